"""PouchDB with pouchdb-server: the offline-first client that most people know, and the server made for it (both npm)."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import install
from bench.peers.install import PeerUnavailable
from bench.processes import ROOT, Child, Talker, running
from bench.servers import HOST, Server, free_port, peer

PACKAGES = ("pouchdb-server@4.2.0", "pouchdb@7.3.1")
DATABASE = "bench"
AT_ONCE = 1_000


def installed() -> Path:
    return install.npm("pouchdb", *PACKAGES)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server with LevelDB on the disk, and an empty database."""
    node = shutil.which("node")
    if node is None:
        raise PeerUnavailable("node is not here")
    port = free_port()
    program = installed() / "node_modules" / "pouchdb-server" / "bin" / "pouchdb-server"
    data = folder / "data"
    data.mkdir(parents=True)
    command = [node, program, "--host", HOST, "--port", str(port), "--dir", data, "--no-stdout-logs"]
    with peer(Child(command, folder / "log", cwd=folder), port) as server:
        ask(server, "PUT", f"/{DATABASE}")
        yield server


@contextmanager
def talking(folder: Path) -> Iterator[Talker]:
    node = shutil.which("node") or "node"
    command = [node, ROOT / "bench" / "load" / "pouch.js", installed()]
    with running(Child(command, folder / "client.log", talks=True)) as child:
        yield Talker(child)


def fill(server: Server, count: int) -> None:
    for first in range(0, count, AT_ONCE):
        docs = [
            {
                "_id": f"{number:020}",
                "type": 1,
                "money": 12.34,
                "category": "food",
                "time": "2026-02-18",
                "remark": "lunch with four",
            }
            for number in range(first, min(first + AT_ONCE, count))
        ]
        ask(server, "POST", f"/{DATABASE}/_bulk_docs", {"docs": docs})


def ask(server: Server, method: str, path: str, body: object = None) -> None:
    connection = http.client.HTTPConnection(server.http, timeout=120)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise PeerUnavailable(f"pouchdb-server: {answer.status} {said[:200]!r}")
    finally:
        connection.close()
