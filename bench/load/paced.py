"""HTTP requests at a fixed pace over keep-alive connections, and how long each took.

    python -m bench.load.paced        reads a `Plan` as JSON lines on stdin, answers each with a `Latency`

Corrected for coordinated omission: a request's time runs from the moment at which it was due, not from the moment
at which a connection was free for it. A server that stands still for a second is late for a second's requests.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

import msgspec
import uvloop
from msgspec import Struct

from bench.load.post import ID, ID_LENGTH, Ids, Post

GRACE_SECONDS = 60.0
Make = Callable[[int, float], bytes]


class Plan(Struct, frozen=True):
    address: str
    requests: list[str]
    """The bytes of a request, as text, with `{id}` where a fresh Xid has to stand; several are sent in turn."""
    per_second: float
    seconds: float
    connections: int = 16


def request(post: Post, headers: Mapping[str, str]) -> str:
    """One request of a plan: its length is known, for an Xid is always as long."""
    length = len(post.body.encode()) + post.body.count(ID) * (ID_LENGTH - len(ID))
    lines = [f"{post.method} {post.path} HTTP/1.1", "Host: bench", f"Content-Length: {length}"]
    if post.body:
        lines.append("Content-Type: application/json")
    lines += (f"{name}: {value}" for name, value in headers.items())
    return "\r\n".join((*lines, "", post.body))


class Latency(Struct, frozen=True):
    """Milliseconds from due to answered; `unanswered` and `failed` (not 2xx) make a turn worthless."""

    sent: int
    unanswered: int
    failed: int
    p50: float
    p90: float
    p99: float
    p999: float
    most: float
    late_p99: float
    """How late we ourselves sent, on a free connection: our own part in the figures above."""


def summary(took: list[float], late: list[float], sent: int, failed: int) -> Latency:
    took.sort()
    late.sort()

    def at(values: list[float], share: float) -> float:
        return values[min(len(values) - 1, int(len(values) * share))] * 1000 if values else 0.0

    return Latency(
        sent,
        sent - len(took),
        failed,
        at(took, 0.5),
        at(took, 0.9),
        at(took, 0.99),
        at(took, 0.999),
        at(took, 1.0),
        at(late, 0.99),
    )


class _Connection(asyncio.Protocol):
    """One request at a time; knows where an answer ends by its content-length."""

    def __init__(self, pace: _Pace) -> None:
        self._pace = pace
        self._read = b""
        self._left = -1
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, request: bytes, due: float) -> None:
        self.due = due
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._read += data
        if self._left < 0:
            head, end, _body = self._read.partition(b"\r\n\r\n")
            if not end:
                return
            _, _, length = head.lower().partition(b"content-length:")
            self._left = len(head) + 4 + int(length.partition(b"\r\n")[0] or 0)
        if len(self._read) >= self._left:
            ok = self._read[9:10] == b"2"
            self._read, self._left = b"", -1
            self._pace.answered(self, ok=ok)

    def close(self) -> None:
        self._transport.close()


def as_it_is(plan: Plan) -> Make:
    """Each request in turn, each with ids of its own."""
    ids = Ids()
    templates = plan.requests
    return lambda number, _due: ids.filled(templates[number % len(templates)]).encode()


class _Pace:
    def __init__(self, plan: Plan, make: Make) -> None:
        self._make = make
        self._interval = 1 / plan.per_second
        self._count = max(1, int(plan.per_second * plan.seconds))
        self._free: deque[_Connection] = deque()
        self._waiting: deque[tuple[int, float]] = deque()
        self._took: list[float] = []
        self._late: list[float] = []
        self._failed = 0
        self._all_answered = asyncio.Event()

    def answered(self, connection: _Connection, *, ok: bool) -> None:
        self._took.append(time.perf_counter() - connection.due)
        self._failed += not ok
        if len(self._took) == self._count:
            self._all_answered.set()
        if self._waiting:
            self._send(connection, *self._waiting.popleft())
        else:
            self._free.append(connection)

    async def run(self, connections: list[_Connection]) -> Latency:
        self._free.extend(connections)
        start = time.perf_counter() + 0.01
        for number in range(self._count):
            due = start + number * self._interval
            if (ahead := due - time.perf_counter()) > 0:
                await asyncio.sleep(ahead)
            elif number % 64 == 0:
                await asyncio.sleep(0)  # behind: the answers must be read all the same
            if self._free:
                self._late.append(time.perf_counter() - due)
                self._send(self._free.popleft(), number, due)
            else:
                self._waiting.append((number, due))
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._all_answered.wait()
        return summary(self._took, self._late, self._count, self._failed)

    def _send(self, connection: _Connection, number: int, due: float) -> None:
        connection.send(self._make(number, due), due)


async def measure(plan: Plan, make: Make | None = None) -> Latency:
    """`make`: the bytes of the request with this number, which is due then; otherwise the plan's."""
    loop = asyncio.get_running_loop()
    host, _, port = plan.address.rpartition(":")
    pace = _Pace(plan, make or as_it_is(plan))
    connections = [
        (await loop.create_connection(lambda: _Connection(pace), host, int(port)))[1]
        for _ in range(plan.connections)
    ]
    gc.collect()
    gc.disable()  # our own pauses must not be taken for the server's
    try:
        return await pace.run(connections)
    finally:
        gc.enable()
        for connection in connections:
            connection.close()


def main() -> None:
    for line in sys.stdin.buffer:
        done = uvloop.run(measure(msgspec.json.decode(line, type=Plan)))
        sys.stdout.buffer.write(msgspec.json.encode(done) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
