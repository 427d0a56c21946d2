"""Matrix's client-server API, as far as messages between two people need it: PUT to send, long polls to receive."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from urllib.parse import quote

from bench.load.login import Login

BODY = "x" * 64
FILTER = quote(
    '{"room":{"timeline":{"limit":1000},"state":{"lazy_load_members":true}},"presence":{"types":[]}}'
)
POLL_MS = 20_000
_NEXT = re.compile(rb'"next_batch":"([^"]+)"')
_MESSAGE = re.compile(rb'"type":"m\.room\.message"')
_LENGTH = re.compile(rb"content-length: *(\d+)", re.I)


class Wire:
    """One keep-alive connection, one request at a time."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: str = "") -> bytes:
        if self._streams is None:
            host, _, port = self._address.rpartition(":")
            self._streams = await asyncio.open_connection(host, int(port), limit=16 * 1024 * 1024)
        reader, writer = self._streams
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self._address}\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        said = await reader.readexactly(int(length[1])) if length else await _chunks(reader)
        if head[9:10] != b"2":
            raise ConnectionError(f"{method} {path}: {head[:80]!r} {said[:300]!r}")
        return said


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    said = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        said += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return said


class Line:
    def __init__(self, address: str, login: Login) -> None:
        self._address = address
        self._login = login
        self._idle: list[Wire] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_saved: Callable[[int], None] = _nobody
        self.on_delivered: Callable[[int], None] = _nobody

    def talk_to(self, other: Login) -> None:
        """The room says it: both are in it."""

    def send(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            self._begin(self._put(number))

    async def _put(self, number: int) -> None:
        wire = self._idle.pop() if self._idle else Wire(self._address, self._login.secret)
        room, body = quote(self._login.room), f'{{"msgtype":"m.text","body":"{BODY}"}}'
        await wire.ask("PUT", f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{number}", body)
        self._idle.append(wire)
        self.on_saved(1)

    async def listen(self) -> None:
        """What is there already is passed over, then every message is counted."""
        wire = Wire(self._address, self._login.secret)
        since = _next(await wire.ask("GET", f"/_matrix/client/v3/sync?filter={FILTER}&timeout=0"))

        async def polls() -> None:
            nonlocal since
            while True:
                path = f"/_matrix/client/v3/sync?filter={FILTER}&timeout={POLL_MS}&since={since}"
                said = await wire.ask("GET", path)
                since = _next(said)
                if count := len(_MESSAGE.findall(said)):
                    self.on_delivered(count)

        self._begin(polls())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error  # the loop prints it; the message it was for is never done


def _next(said: bytes) -> str:
    found = _NEXT.search(said)
    if found is None:
        raise ConnectionError(f"no next_batch in {said[:300]!r}")
    return found[1].decode()


def _nobody(_count: int) -> None: ...


async def connect(address: str, login: Login) -> Line:
    line = Line(address, login)
    await line.listen()
    return line
