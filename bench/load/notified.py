"""Bills at a fixed pace over HTTP, and how long after each was due it was answered, and its notification had come.

    python -m bench.load.notified        reads a `Plan` as JSON lines on stdin, answers each with numbers

The notification's time runs from the moment at which the write was due: the commit lies after that, so from commit
to notification it is less.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import cast

import msgspec
import uvloop
from msgspec import Struct

from bench.load import paced
from bench.load.login import Login
from bench.load.post import ID_LENGTH, Ids
from bench.scenario import Values

GRACE_SECONDS = 60.0
_PUBLISH, _CONNACK, _SUBACK = 3, 2, 9


class Listen(Struct, frozen=True, tag="listen"):
    """Listeners that stay until we end, and only acknowledge; answered with how many there are."""

    mqtt: str
    listeners: list[Login]


class Plan(Struct, frozen=True, tag="plan"):
    http: paced.Plan
    mqtt: str
    listeners: list[Login]
    notified: int
    """Listeners that are told of each write."""


class Listener(asyncio.Protocol):
    """An MQTT 3.1.1 client with a subscription to its user's notifications, which acknowledges at once."""

    def __init__(self, login: Login, heard: Callable[[bytes], None]) -> None:
        self._login = login
        self._heard = heard
        self._read = b""
        self.ready = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        who = b"".join(map(_string, (f"bench-{self._login.user}", self._login.user, self._login.secret)))
        self._transport.write(_packet(0x10, _string("MQTT") + bytes((4, 0b1100_0010, 0, 60)) + who))

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"the broker closed the listener of {self._login.user}"))

    def data_received(self, data: bytes) -> None:
        self._read += data
        at = 0
        while (found := _whole(self._read, at)) is not None:
            body, end = found
            self._packet(self._read[at] >> 4, self._read[at] & 0b110, self._read[body:end])
            at = end
        self._read = self._read[at:]

    def _packet(self, kind: int, qos: int, body: bytes) -> None:
        if kind == _PUBLISH:
            topic = 2 + int.from_bytes(body[:2])
            if qos:
                self._transport.write(b"\x40\x02" + body[topic : topic + 2])
            self._heard(body[topic:])
        elif kind == _CONNACK:
            if body[1]:
                self.ready.set_exception(ConnectionError(f"CONNACK {body[1]} for {self._login.user}"))
                return
            topic_filter = _string(f"heji/notify/{self._login.user}/#")
            self._transport.write(_packet(0x82, b"\x00\x01" + topic_filter + b"\x01"))
        elif kind == _SUBACK:
            self.ready.set_result(None)

    def close(self) -> None:
        self._transport.close()


def _whole(read: bytes, at: int) -> tuple[int, int] | None:
    """Where the body of the packet at `at` begins and ends, if all of it is there."""
    size, shift, place = 0, 0, at + 1
    while place < len(read):
        size |= (read[place] & 0x7F) << shift
        place += 1
        if not read[place - 1] & 0x80:
            return (place, place + size) if place + size <= len(read) else None
        shift += 7
    return None


def _string(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(2) + raw


def _packet(first: int, body: bytes) -> bytes:
    size, left = bytearray(), len(body)
    while left > 0x7F:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    size.append(left)
    return bytes((first,)) + size + body


class Notified:
    """Knows each bill again by its id, which begins as no other id does."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ids = Ids()
        self._mark = self._ids.prefix.encode()
        self._due: dict[bytes, float] = {}
        self._took: list[float] = []
        self._expected = int(plan.http.per_second * plan.http.seconds) * plan.notified
        self._all = asyncio.Event()

    async def run(self) -> Values:
        listeners = [await listen(self._plan.mqtt, login, self._heard) for login in self._plan.listeners]
        answered = await paced.measure(self._plan.http, self._make)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self._all.wait()
        except TimeoutError:
            raise SystemExit(f"{len(self._took)} of {self._expected} notifications came") from None
        for listener in listeners:
            listener.close()
        if answered.failed or answered.unanswered:
            raise SystemExit(f"{answered.failed} writes failed, {answered.unanswered} had no answer")
        heard = paced.summary(self._took, [], self._expected, 0)
        return {
            "p50": heard.p50,
            "p99": heard.p99,
            "answered_p50": answered.p50,
            "answered_p99": answered.p99,
            "late_p99": answered.late_p99,
        }

    def _make(self, number: int, due: float) -> bytes:
        requests = self._plan.http.requests
        made = self._ids.filled(requests[number % len(requests)]).encode()
        self._due[self._id_in(made)] = due
        return made

    def _heard(self, message: bytes) -> None:
        self._took.append(time.perf_counter() - self._due[self._id_in(message)])
        if len(self._took) == self._expected:
            self._all.set()

    def _id_in(self, text: bytes) -> bytes:
        at = text.index(self._mark)
        return text[at : at + ID_LENGTH]


async def listen(address: str, login: Login, heard: Callable[[bytes], None]) -> Listener:
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    _, listener = await loop.create_connection(lambda: Listener(login, heard), host, int(port))
    async with asyncio.timeout(GRACE_SECONDS):
        await listener.ready
    return listener


async def serve() -> None:
    loop = asyncio.get_running_loop()
    kept: list[Listener] = []
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        asked = msgspec.json.decode(line, type=Listen | Plan)
        if isinstance(asked, Plan):
            values = await Notified(asked).run()
        else:
            kept += [await listen(asked.mqtt, login, lambda _message: None) for login in asked.listeners]
            values = {"listeners": float(len(kept))}
        sys.stdout.buffer.write(msgspec.json.encode(values) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    uvloop.run(serve())
