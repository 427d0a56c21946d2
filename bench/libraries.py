"""Libraries that are measured: ours, and what its peers have that comes nearest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench import tree
from bench.load import library as load
from bench.load.transfer import Download, Moved, Upload
from bench.peers import kinto as kinto_server
from bench.peers import nginx as nginx_server
from bench.processes import Talker, talker
from bench.scenario import Values
from bench.servers import Refused, Server, call, holdfast
from bench.users import LIFTED as USERS_LIFTED
from bench.users import User, new_users

CHANGES = 1_000
ENTITIES = 10_000
FILE_BYTES = 100_000_000
SECONDS = 120.0
LIFTED = {**USERS_LIFTED, "limits.library_requests": 10**9}
PDF = {"Content-Type": "application/pdf"}


class Library(Struct):
    """A running library or file server. A contender has what its steps ask for."""

    server: Server
    device: Talker
    mover: Talker
    pulled: load.Pulls | None = None
    pushing: User | None = None
    version: int = 0
    small: str = ""
    """The path of a small request."""
    uploads: Callable[[], Upload] | None = None
    downloads: Callable[[str], Download] | None = None
    file: str = ""
    """MD5 of a file that is there to be downloaded."""

    def push(self, seconds: float) -> Values:
        assert self.pushing is not None
        path = f"/library/push?userId={self.pushing.id}"
        asked = load.Pushes(self.server.http, path, self.pushing.headers, CHANGES, self.version, seconds)
        said = self.device.ask(asked, dict[str, float], seconds + SECONDS)
        self.version = int(said["version"])
        return said

    def pull(self, seconds: float) -> Values:
        assert self.pulled is not None
        asked = load.Pulls(
            self.pulled.address, self.pulled.path, self.pulled.headers, self.pulled.mark, seconds
        )
        said = self.device.ask(asked, dict[str, float], seconds + SECONDS)
        if said["rows"] != ENTITIES:
            raise Refused(f"a full pull brought {said['rows']} of {ENTITIES} rows")
        return said

    def upload(self, _seconds: float) -> Values:
        assert self.uploads is not None
        return self._moved(self.uploads())

    def download(self, _seconds: float) -> Values:
        assert self.downloads is not None
        return self._moved(self.downloads(self.file))

    def _moved(self, asked: Upload | Download) -> Values:
        """Its rate, what it cost, and by how much the server's memory rose above what it was."""
        pid = self.server.pid
        tree.forget_peak(pid)
        before, used = tree.resident_bytes(pid), tree.cpu_seconds(pid)
        moved = self.mover.ask(asked, Moved, SECONDS)
        cpu = (tree.cpu_seconds(pid) - used) * 1000
        if moved.size != FILE_BYTES:
            raise Refused(f"{moved.size} of {FILE_BYTES} bytes came")
        self.file = moved.md5 or self.file
        values = {"rate": moved.rate, "cpu": cpu}
        if len(tree.members(pid)) == 1:  # a peak is known of one process only
            values["grown"] = max(0, tree.peak_bytes(pid) - before) / 1024 / 1024
        return values


@contextmanager
def _library(server: Server, folder: Path) -> Iterator[Library]:
    with (
        talker("bench.load.library", folder / "device") as device,
        talker("bench.load.transfer", folder / "mover") as mover,
    ):
        yield Library(server, device, mover)


@contextmanager
def ours(folder: Path) -> Iterator[Library]:
    with holdfast(folder, LIFTED) as server, _library(server, folder) as library:
        pushing, pulling = new_users(server, 2)
        path = f"/library/push?userId={pulling.id}"
        filled = load.Pushes(server.http, path, pulling.headers, CHANGES, count=ENTITIES)
        library.device.ask(filled, dict[str, float], SECONDS)
        whole = f"/library/pull?userId={pulling.id}&since=0"
        library.pulled = load.Pulls(server.http, whole, pulling.headers, '"serverId":', 0)
        library.pushing = pushing
        library.uploads = lambda: Upload(
            server.http, "POST", "/file/upload", {**pulling.headers, **PDF}, FILE_BYTES
        )
        library.downloads = lambda md5: _ours_to_download(server, pulling, md5)
        server.headers = pushing.headers
        library.small = f"/file/checkHash?hash={'0' * 32}"
        yield library


def _ours_to_download(server: Server, user: User, md5: str) -> Download:
    """Whoever has a part with this file may download it."""
    here = call(server, "GET", f"/library/pull?userId={user.id}&since={10**12}&limit=1", None, user.headers)
    made = load.changes(4)
    made["instrumentScores"][0]["data"] = {
        "scoreId": made["scores"][0]["entityId"],
        "instrumentName": f"Viola {time.monotonic_ns()}",
        "pdfHash": md5,
    }
    body = {"clientLibraryVersion": here["libraryVersion"], **made}
    call(server, "POST", f"/library/push?userId={user.id}", body, user.headers)
    return Download(server.http, f"/file/download?hash={md5}", user.headers)


@contextmanager
def noop(folder: Path) -> Iterator[Library]:
    """Another of ours, asked for nothing but who is asking."""
    with holdfast(folder, LIFTED) as server, _library(server, folder) as library:
        server.headers = new_users(server, 1)[0].headers
        library.small = "/auth/me"
        yield library


@contextmanager
def kinto(folder: Path) -> Iterator[Library]:
    with kinto_server.kinto(folder) as running, _library(running.server, folder) as library:
        running.fill(ENTITIES)
        path = f"{kinto_server.RECORDS}?_limit={kinto_server.PAGE}&_sort=last_modified"
        server = running.server
        library.pulled = load.Pulls(server.http, path, server.headers, '"last_modified":', 0)
        yield library


@contextmanager
def nginx(folder: Path) -> Iterator[Library]:
    with nginx_server.nginx(folder) as server, _library(server, folder) as library:
        library.uploads = lambda: Upload(server.http, "PUT", "/file.pdf", {}, FILE_BYTES)
        library.downloads = lambda _md5: Download(server.http, "/file.pdf", {})
        yield library
