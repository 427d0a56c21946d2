"""Requests that make something: each with an id of its own, whoever sends them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from bench.load import wrk
from bench.load.post import Ids, Post
from bench.processes import ChildFailed
from bench.servers import Server
from holdfast.ids import is_xid


class Keeper(BaseHTTPRequestHandler):
    """Keeps the bodies that it was sent; refuses every third when told so."""

    protocol_version = "HTTP/1.1"
    bodies: ClassVar[list[str]] = []
    refuses: ClassVar[bool] = False

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(409 if self.refuses and len(self.bodies) % 3 == 0 else 201)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def keeper(monkeypatch: pytest.MonkeyPatch, folder: Path, *, refuses: bool = False) -> Iterator[Server]:
    monkeypatch.setattr(wrk, "WORK", folder)
    (folder / "tmp").mkdir()
    monkeypatch.setattr(Keeper, "bodies", [])
    monkeypatch.setattr(Keeper, "refuses", refuses)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Keeper)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Server(1, {"http": f"127.0.0.1:{server.server_port}"}, folder)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_every_body_that_is_sent_has_ids_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with keeper(monkeypatch, tmp_path) as server:
        for _run in range(2):
            said = wrk.requests_per_second(
                server, 1, what=Post("/", '{"a":"{id}","b":["{id}"]}'), connections=2
            )
            assert said["rate"] > 0
    found = [re.fullmatch(r'\{"a":"(.{20})","b":\["(.{20})"\]\}', body) for body in Keeper.bodies]
    assert len(found) > 10
    ids = [one for match in found if match is not None for one in match.groups()]
    assert len(set(ids)) == 2 * len(found)
    assert all(map(is_xid, ids))


def test_answers_that_are_errors_spoil_a_run_unless_the_peer_may_refuse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with keeper(monkeypatch, tmp_path, refuses=True) as server:
        with pytest.raises(ChildFailed, match="answers were errors"):
            wrk.requests_per_second(server, 1, what=Post("/", "{}"), connections=1)
        sent = len(Keeper.bodies)
        said = wrk.requests_per_second(server, 1, what=Post("/", "{}", may_be_refused=True), connections=1)
        sent = len(Keeper.bodies) - sent
    assert 0.5 * sent < said["rate"] < 0.75 * sent


def test_ids_fill_a_template_one_by_one() -> None:
    ids = Ids()
    first, second = ids.filled("{id} {id}").split(" ")
    assert first != second
    assert is_xid(first)
    assert is_xid(second)
    assert ids.filled("nothing") == "nothing"
