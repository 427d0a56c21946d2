"""Large PDFs against a real server: flat memory, cuts, kills, slow readers; and `holdfast check` has nothing to say."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.acceptance.serving import PASSWORD, holdfast, quick_server
from tests.faults.process import Server

MIB = 1024 * 1024
LARGE = 100 * MIB
GROWTH = 40 * MIB
TUS = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}
PATIENCE = 60.0

pytestmark = pytest.mark.slow


class Large(msgspec.Struct, frozen=True):
    """A PDF that is never whole in our memory either."""

    size: int
    seed: int

    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        stop = self.size if stop is None else stop
        while start < stop:
            block, at = divmod(start, MIB)
            piece = self._block(block)[at : at + stop - start]
            yield piece
            start += len(piece)

    def _block(self, number: int) -> bytes:
        head = b"%PDF-1.7\n" if number == 0 else b""
        word = hashlib.sha256(f"{self.seed} {number}".encode()).digest()
        return (head + word * (MIB // len(word)))[:MIB]

    def md5(self) -> str:
        hashed = hashlib.md5(usedforsecurity=False)
        for piece in self.pieces():
            hashed.update(piece)
        return hashed.hexdigest()


class Memory:
    """How much the server grew at its highest since this was made."""

    def __init__(self, server: Server) -> None:
        self._folder = Path(f"/proc/{server.pid}")
        (self._folder / "clear_refs").write_text("5")  # the peak starts from here
        self._before = self._read("VmRSS")

    def growth(self) -> int:
        return self._read("VmHWM") - self._before

    def _read(self, name: str) -> int:
        return int((self._folder / "status").read_text().partition(f"{name}:")[2].split()[0]) * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = quick_server(tmp_path / "data", "--set", "http.body_timeout=5")
    yield made
    made.end()


class Ann:
    """A user over HTTP."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self.http = httpx.AsyncClient(
            base_url=f"http://{address}", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE
        )

    async def upload(self, large: Large) -> httpx.Response:
        return await self.http.post(
            "/file/upload", content=_sent(large.pieces()), headers={"Content-Length": str(large.size)}
        )

    async def refer(self, hash_: str, at: int) -> None:
        part = {"scoreId": "S", "instrumentName": hash_, "pdfHash": hash_}
        body = {
            "clientLibraryVersion": at,
            "scores": [{"entityId": "S", "operation": "create", "data": {"title": "s"}}],
            "instrumentScores": [{"entityId": hash_, "operation": "create", "data": part}],
        }
        said = await self.http.post("/library/push", json=body)
        assert said.status_code == 200, said.text

    async def download(self, hash_: str, headers: dict[str, str] | None = None) -> tuple[str, int]:
        """The MD5 and the size of what comes."""
        hashed, size = hashlib.md5(usedforsecurity=False), 0
        async with self.http.stream("GET", f"/file/download?hash={hash_}", headers=headers) as said:
            assert said.status_code in (200, 206)
            async for piece in said.aiter_raw():
                hashed.update(piece)
                size += len(piece)
        return hashed.hexdigest(), size


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


AnnAt = Callable[[str], Awaitable[Ann]]


@pytest.fixture
async def ann_at() -> AsyncIterator[AnnAt]:
    """Logs in; every one of them is closed at the end."""
    everyone: list[Ann] = []

    async def logged_in(address: str) -> Ann:
        everyone.append(await _logged_in(address))
        return everyone[-1]

    yield logged_in
    for ann in everyone:
        await ann.http.aclose()


async def _logged_in(address: str) -> Ann:
    account = {"username": "ann", "password": PASSWORD}
    async with httpx.AsyncClient(base_url=f"http://{address}", timeout=PATIENCE) as http:
        await http.post("/auth/register", json=account)
        login = (await http.post("/auth/login", json=account)).json()["data"]
    return Ann(address, login["accessToken"])


def kept(server: Server) -> list[Path]:
    return [path for path in (server.folder / "blobs").rglob("*") if path.is_file() and path.name != "owner"]


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if await done():
                return
            await asyncio.sleep(0.02)


async def eventually_nothing_kept(server: Server) -> None:
    async def nothing() -> bool:
        return not kept(server)

    await until(nothing)


async def test_100_mb_go_up_and_down_with_flat_memory(server: Server, ann_at: AnnAt) -> None:
    ann = await ann_at((await server.start())["http"])
    await ann.upload(Large(3 * MIB, 0))  # whatever grows once has grown
    large = Large(LARGE, 1)
    expected = large.md5()
    memory = Memory(server)
    assert (await ann.upload(large)).json() == {"hash": expected, "path": f"{expected}.pdf"}
    up = memory.growth()
    await ann.refer(expected, 0)
    memory = Memory(server)
    assert await ann.download(expected) == (expected, LARGE)
    down = memory.growth()
    assert await ann.download(expected, {"Range": f"bytes={LARGE - 5}-"}) == (
        hashlib.md5(b"".join(large.pieces(LARGE - 5)), usedforsecurity=False).hexdigest(),
        5,
    )
    print(f"\n100 MB: memory grew by {up / MIB:.1f} MiB on the way up, {down / MIB:.1f} MiB on the way down")
    assert up < GROWTH
    assert down < GROWTH


async def test_a_resumable_upload_survives_cuts_and_a_kill_with_flat_memory(
    server: Server, ann_at: AnnAt
) -> None:
    ann = await ann_at((await server.start())["http"])
    large = Large(60 * MIB, 2)
    begun = await ann.http.post("/file/tus", headers={**TUS, "Upload-Length": str(large.size)})
    path = begun.headers["location"]
    memory = Memory(server)
    cut_at = [25 * MIB + 17, 40 * MIB + 3]
    for stop in cut_at:
        offset = await _offset(ann, path)
        await _cut_patch(ann, path, large, offset, stop)

        async def kept_before_the_cut(stop: int = stop) -> bool:
            return await _offset(ann, path) >= stop - MIB

        await until(kept_before_the_cut)
    grown = memory.growth()
    server.kill()
    ann = await ann_at((await server.start())["http"])
    offset = await _offset(ann, path)
    assert offset >= cut_at[-1] - MIB
    said = await ann.http.patch(
        path,
        content=_sent(large.pieces(offset)),
        headers={**TUS, "Upload-Offset": str(offset), "Content-Length": str(large.size - offset)},
    )
    assert (said.status_code, said.headers["upload-hash"]) == (204, large.md5())
    await ann.refer(large.md5(), 0)
    assert await ann.download(large.md5()) == (large.md5(), large.size)
    assert grown < GROWTH
    await _sound(server)


async def _offset(ann: Ann, path: str) -> int:
    return int((await ann.http.head(path, headers=TUS)).headers["upload-offset"])


async def _cut_patch(ann: Ann, path: str, large: Large, offset: int, stop: int) -> None:
    """Announces all of the rest, and leaves in the middle of it."""
    lines = {**TUS, "Upload-Offset": str(offset), "Content-Length": str(large.size - offset)}
    await _send_and_leave(ann, f"PATCH {path}", lines, large.pieces(offset, stop))


async def _send_and_leave(ann: Ann, what: str, lines: dict[str, str], pieces: Iterator[bytes]) -> None:
    host, _, port = ann.address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    headers = {"Host": ann.address, "Authorization": f"Bearer {ann.token}", **lines}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"{what} HTTP/1.1\r\n{head}\r\n".encode())
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("how", ["cut", "stalled", "chunked and cut"])
async def test_an_upload_that_does_not_end_leaves_nothing(server: Server, ann_at: AnnAt, how: str) -> None:
    ann = await ann_at((await server.start())["http"])
    large = Large(20 * MIB, 3)
    if how == "stalled":
        host, _, port = ann.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"Host: x\r\nAuthorization: Bearer {ann.token}\r\nContent-Length: {large.size}\r\n"
        writer.write(f"POST /file/upload HTTP/1.1\r\n{head}\r\n".encode() + next(large.pieces()))
        assert b" 400 " in await reader.readline()
        writer.close()
        await writer.wait_closed()
    elif how == "cut":
        lines = {"Content-Length": str(large.size), "Content-Type": "application/pdf"}
        await _send_and_leave(ann, "POST /file/upload", lines, large.pieces(0, 15 * MIB))
    else:
        chunks = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in large.pieces(0, 15 * MIB))
        await _send_and_leave(ann, "POST /file/upload", {"Transfer-Encoding": "chunked"}, chunks)
    await eventually_nothing_kept(server)
    assert (await ann.http.get(f"/file/checkHash?hash={large.md5()}")).json() == {"exists": False}
    assert (await ann.upload(large)).status_code == 200


async def test_an_upload_that_a_kill_interrupts_leaves_nothing_after_the_next_start(
    server: Server, ann_at: AnnAt
) -> None:
    ann = await ann_at((await server.start())["http"])
    large = Large(20 * MIB, 4)
    half = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        for number, piece in enumerate(large.pieces()):
            if number == 12:
                half.set()
                await asyncio.sleep(PATIENCE)
            yield piece

    sending = asyncio.create_task(
        ann.http.post("/file/upload", content=slowly(), headers={"Content-Length": str(large.size)})
    )
    await half.wait()

    async def something() -> bool:
        return bool(kept(server))

    await until(something)
    server.kill()
    sending.cancel()
    await asyncio.wait([sending])
    await server.start()
    await eventually_nothing_kept(server)
    await _sound(server)


async def test_a_slow_reader_of_a_file_or_of_a_large_pull_costs_little_memory(
    server: Server, ann_at: AnnAt
) -> None:
    ann = await ann_at((await server.start())["http"])
    large = Large(LARGE, 5)
    await ann.upload(large)
    await ann.refer(large.md5(), 0)
    text = "x" * (4 * MIB)
    for number in range(8):
        data = {"scoreId": "S", "instrumentName": f"p{number}", "annotationsJson": f"{number}{text}"}
        change = {"entityId": f"p{number}", "operation": "create", "data": data}
        body = {"clientLibraryVersion": 2 + number, "instrumentScores": [change]}
        assert (await ann.http.post("/library/push", json=body)).status_code == 200
    assert len((await ann.http.get("/library/pull")).content) > 32 * MIB
    memory = Memory(server)
    readers = []
    for what in [f"/file/download?hash={large.md5()}", "/library/pull"] * 3:
        host, _, port = ann.address.rpartition(":")
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        reader.connect((host, int(port)))
        reader.sendall(
            f"GET {what} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ann.token}\r\n\r\n".encode()
        )
        assert reader.recv(1_000).startswith(b"HTTP/1.1 200")
        readers.append(reader)
    for _ in range(20):  # others are served meanwhile, and pushes go through
        assert (await ann.http.get("/file/checkHash?hash=" + "0" * 32)).status_code == 200
    grown = memory.growth()
    for reader in readers:
        reader.close()
    print(f"\nsix slow readers: memory grew by {grown / MIB:.1f} MiB")
    assert grown < 2 * GROWTH


async def _sound(server: Server) -> None:
    ended = await asyncio.to_thread(holdfast, "check", "--data", server.folder)
    assert ended.code == 0, ended.out + ended.err
