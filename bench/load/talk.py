"""Lines of one-to-one chat in a process of their own, in any dialect.

    python -m bench.load.talk (xmpp | matrix | chat)      reads `Connect` and `Run` as JSON lines on stdin

`Connect` opens more lines, which stay open, and answers how many there are; `Run` has messages sent on the first of
them, in pairs (each line with an even number to the next).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Protocol

import msgspec
import uvloop
from msgspec import Struct

from bench.load import matrix, pairs, websocket_chat, xmpp
from bench.load.login import Login
from bench.load.pairs import Pair
from bench.scenario import Values

AT_ONCE = 50


class Connect(Struct, frozen=True, tag="connect"):
    address: str
    logins: list[Login]


class Run(Struct, frozen=True, tag="run"):
    seconds: float
    pairs: int
    window: int = 0
    per_second: float = 0.0


class Line(Protocol):
    on_saved: Callable[[int], None]
    on_delivered: Callable[[int], None]

    def talk_to(self, other: Login) -> None: ...

    def send(self, first: int, count: int) -> None: ...


DIALECTS: dict[str, ModuleType] = {"xmpp": xmpp, "matrix": matrix, "chat": websocket_chat}


class Talk:
    def __init__(self, connect: Callable[[str, Login], Awaitable[Line]]) -> None:
        self._connect = connect
        self._lines: list[Line] = []
        self._logins: list[Login] = []
        self._pairs: list[Pair] = []

    async def answer(self, asked: Connect | Run) -> Values:
        if isinstance(asked, Connect):
            return await self._open(asked)
        while len(self._pairs) < asked.pairs:
            self._pairs.append(self._pair(len(self._pairs) * 2))
        return await pairs.run(
            self._pairs[: asked.pairs], asked.seconds, window=asked.window, per_second=asked.per_second
        )

    async def _open(self, asked: Connect) -> Values:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(login: Login) -> Line:
            async with gate:
                return await self._connect(asked.address, login)

        self._lines += await asyncio.gather(*map(one, asked.logins))
        self._logins += asked.logins
        return {"lines": float(len(self._lines))}

    def _pair(self, first: int) -> Pair:
        sender, receiver = self._lines[first], self._lines[first + 1]
        sender.talk_to(self._logins[first + 1])
        pair = Pair(sender.send)
        sender.on_saved, receiver.on_delivered = pair.saved, pair.delivered
        return pair


async def _serve(dialect: str) -> None:
    talk, loop = Talk(DIALECTS[dialect].connect), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        values = await talk.answer(msgspec.json.decode(line, type=Connect | Run))
        sys.stdout.buffer.write(msgspec.json.encode(values) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1]))
