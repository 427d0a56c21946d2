"""Many connections of our chat at once: a group whose members are all online, and all of them coming back at once.

python -m bench.load.crowd        reads `Come`, `Say` and `Leave` as JSON lines on stdin, answers each with numbers
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import time

import msgspec
import uvloop
from msgspec import Struct

from bench.load.login import Login
from bench.load.websocket_chat import Line, decode
from bench.scenario import Values

ACK_EVERY = 50
"""Messages after which a member acknowledges, as a client does that is busy; the last are acknowledged after a pause."""
PAUSE_SECONDS = 0.2
CALM_SECONDS = 60.0
COME_AGAIN_SECONDS = (0.5, 2.0)
_MESSAGE = b'_CHAT"'


class Come(Struct, frozen=True, tag="come"):
    """More members connect, `at_once` at the same time, until each has the backlog that waits for it."""

    address: str
    logins: list[Login]
    backlog: int = 0
    at_once: int = 100
    seconds: float = 120.0


class Say(Struct, frozen=True, tag="say"):
    """The member with this number talks in the group, a window ahead of what all of them have."""

    member: int
    group: str
    seconds: float
    window: int = 20
    count: int = 0
    """Instead of a time: so many messages, of which only what the server has saved is awaited."""


class Leave(Struct, frozen=True, tag="leave"):
    """All connections are closed."""


class Member(Line):
    """Counts what it is sent without looking into it, and acknowledges now and then."""

    def __init__(self, address: str, login: Login) -> None:
        super().__init__(address, login)
        self.received = 0
        self._acked = 0
        self._newest = b""

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            super().data_received(data)
            return
        self._read += data
        before = self.received
        for payload in self._payloads():
            if _MESSAGE in payload:
                self.received += 1
                self._newest = payload
            elif b'"saved"' in payload:
                self.on_saved(1)
            elif b'"ERROR"' in payload:
                self.closed_because = decode(payload).reason
        if self.received > before:
            self.on_delivered(self.received - before)
            if self.received - self._acked >= ACK_EVERY:
                self.acknowledge_all()

    def acknowledge_all(self) -> None:
        if self.received > self._acked and not self._transport.is_closing():
            self._acked = self.received
            self.acknowledge(decode(self._newest).server_msg_id)


class Crowd:
    def __init__(self) -> None:
        self._members: list[Member] = []
        self._came = 0
        self._said = 0

    async def answer(self, asked: Come | Say | Leave) -> Values:
        match asked:
            case Come():
                return await self._come(asked)
            case Say():
                return await self._say(asked)
            case Leave():
                for member in self._members:
                    member.close()
                self._members = []
                return {}

    async def _come(self, asked: Come) -> Values:
        gate = asyncio.Semaphore(asked.at_once)
        host, _, port = asked.address.rpartition(":")
        loop = asyncio.get_running_loop()
        start = time.perf_counter()

        again = 0

        async def one(login: Login) -> Member:
            """Comes, and comes again if the server had no time for it, as a client does."""
            nonlocal again
            async with gate:
                while True:
                    _, member = await loop.create_connection(
                        lambda: Member(asked.address, login), host, int(port)
                    )
                    member.on_delivered = self._counted
                    try:
                        await member.ready
                    except ConnectionError:
                        if time.perf_counter() > start + asked.seconds:
                            raise
                        again += 1
                        await asyncio.sleep(random.uniform(*COME_AGAIN_SECONDS))
                    else:
                        return member

        new = await asyncio.gather(*map(one, asked.logins))
        self._members += new  # in the order of their logins: `Say` names them by it
        ready = time.perf_counter() - start
        deadline = start + asked.seconds
        while sum(member.received for member in new) < asked.backlog * len(new):
            if time.perf_counter() > deadline:
                break
            await asyncio.sleep(0.05)
        took = time.perf_counter() - start
        await self._calm()
        lacking = sum(member.received < asked.backlog for member in new)
        twice = sum(member.received > asked.backlog for member in new)
        return {
            "ready_s": ready,
            "all_s": took,
            "lacking": lacking,
            "twice": twice,
            "members": float(len(self._members)),
            "again": float(again),
        }

    async def _say(self, asked: Say) -> Values:
        talker = self._members[asked.member]
        talker.talk_in(asked.group)
        others, saved, sent = len(self._members) - 1, 0, 0
        first, came_before = self._said + 1, self._came
        start = time.perf_counter()
        end = start + asked.seconds
        moved = asyncio.Event()

        def on_saved(count: int) -> None:
            nonlocal saved
            saved += count
            moved.set()

        def on_delivered(count: int) -> None:
            self._counted(count)
            moved.set()

        talker.on_saved = on_saved
        for member in self._members:
            member.on_delivered = on_delivered
        gc.collect()
        gc.disable()
        in_time = 0
        while True:
            done = saved if asked.count else min(saved, (self._came - came_before) // others)
            now = time.perf_counter()
            if now < end:
                in_time = self._came - came_before
            more = asked.count - sent if asked.count else (asked.window if now < end else 0)
            room = min(asked.window - (sent - done), more)
            if room > 0:
                talker.send(first + sent, room)
                sent += room
            elif done == sent:
                break
            moved.clear()
            async with asyncio.timeout(CALM_SECONDS):
                await moved.wait()
        gc.enable()
        self._said += sent
        if not asked.count:
            await self._calm()
        return {"rate": in_time / asked.seconds if asked.seconds else 0.0, "messages": float(sent)}

    async def _calm(self) -> None:
        """What was not acknowledged yet is, as by a client that has a moment."""
        await asyncio.sleep(PAUSE_SECONDS)
        for member in self._members:
            member.acknowledge_all()
        await asyncio.sleep(PAUSE_SECONDS)

    def _counted(self, count: int) -> None:
        self._came += count


async def _serve() -> None:
    crowd, loop = Crowd(), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        values = await crowd.answer(msgspec.json.decode(line, type=Come | Say | Leave))
        sys.stdout.buffer.write(msgspec.json.encode(values) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    uvloop.run(_serve())
