"""Opens many connections, greets on each, and keeps them open and idle: what does a connection cost the server?

    python -m bench.load.hold         reads a `Hold` as JSON lines on stdin, answers how many were greeted back

The greeting is the protocol's own (an HTTP request, an MQTT CONNECT, a WebSocket upgrade), with a number of fixed
width in it where the protocol wants a name.
"""

from __future__ import annotations

import asyncio
import base64
import sys

import msgspec
from msgspec import Struct

AT_ONCE = 50
ANSWER_SECONDS = 30.0
NUMBER = b"000000"
"""Stands in the greeting where each connection's own number goes."""


class Hold(Struct, frozen=True):
    address: str
    count: int
    greeting: str
    """base64"""

    @classmethod
    def of(cls, address: str, count: int, greeting: bytes) -> Hold:
        return cls(address, count, base64.b64encode(greeting).decode())


async def _open(
    hold: Hold, number: int, gate: asyncio.Semaphore
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = hold.address.rpartition(":")
    async with gate, asyncio.timeout(ANSWER_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port), limit=65_536)
        writer.write(base64.b64decode(hold.greeting).replace(NUMBER, b"%06d" % number))
        if not await reader.read(65_536):
            raise ConnectionError("the server closed instead of greeting back")
        return reader, writer


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(AT_ONCE)
    kept: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        hold = msgspec.json.decode(line, type=Hold)
        first = len(kept)
        kept += await asyncio.gather(*(_open(hold, first + n, gate) for n in range(hold.count)))
        alive = sum(not reader.at_eof() for reader, _ in kept)
        sys.stdout.buffer.write(msgspec.json.encode(alive) + b"\n")
        sys.stdout.buffer.flush()
    for _, writer in kept:
        writer.close()


if __name__ == "__main__":
    asyncio.run(_serve())
