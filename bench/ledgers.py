"""Ledgers that are measured: ours, and what its peers have that comes nearest. Each says what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench.load.post import ID, Ids, Post
from bench.peers import kinto as kinto_server
from bench.peers import pocketbase as pocketbase_server
from bench.servers import Server, call, holdfast
from bench.users import LIFTED, User, new_users

BATCH = 500
"""Rows of a batch: the most that ours takes."""
FILLED = 100_000
BILL: dict[str, object] = {
    "money": 12.34,
    "type": 1,
    "category": "food",
    "time": "2026-02-18",
    "remark": "lunch with four",
}


class Ledger(Struct):
    """A running ledger, and what a request to it looks like."""

    server: Server
    create: Post
    batch: Post
    fill: Callable[[int], None]
    """So many more entities."""
    page: Callable[[], str]
    """The path of a page of 100 from the middle of what is there."""
    filled: int = 0
    book: str = ""

    def fill_to(self, count: int) -> None:
        if self.filled < count:
            self.fill(count - self.filled)
            self.filled = count


def bill(book: str) -> dict[str, object]:
    return {"_id": ID, "book_id": book, **BILL}


def create(book: str) -> Post:
    return Post("/api/v1/bills/", json.dumps(bill(book)))


def batch(book: str, rows: int = BATCH) -> Post:
    made = {"op": "create", "entity": "bill", "id": ID, "data": {"book_id": book, **BILL}}
    return Post("/api/v1/sync/batch", json.dumps({"operations": [made] * rows}))


def new_book(server: Server, owner: User, members: list[User]) -> str:
    """A book of the owner's that the members have joined by its code."""
    book = Ids()()
    call(server, "POST", "/api/v1/books/", {"_id": book, "name": "bench", "type": "family"}, owner.headers)
    if members:
        code = _data(call(server, "POST", f"/api/v1/books/{book}/share", {}, owner.headers))["code"]
        for member in members:
            call(server, "POST", "/api/v1/books/join", {"code": code}, member.headers)
    return book


def fill(server: Server, book: str, count: int) -> None:
    """Bills through the door, in batches, by whoever the server's headers name."""
    ids = Ids()
    for rows in (*[BATCH] * (count // BATCH), count % BATCH):
        if rows:
            post = batch(book, rows)
            call(server, post.method, post.path, json.loads(ids.filled(post.body)))


def middle_of_feed(server: Server) -> str:
    """A pull of 100 that begins in the middle of what this user's feed holds by time."""
    first, last = (int(str(_changes(server, since)["next_since"])) for since in (0, None))
    return f"/api/v1/sync/changes?since={(first + last) // 2}&limit=100"


def _changes(server: Server, since: int | None) -> dict[str, object]:
    """The first entry, or (with None) the head."""
    if since is None:
        return {"next_since": _data(call(server, "GET", "/api/v1/sync/checksum"))["version"]}
    return _data(call(server, "GET", f"/api/v1/sync/changes?since={since}&limit=1"))


def _data(answer: dict[str, object]) -> dict[str, object]:
    found = answer["data"]
    assert isinstance(found, dict)
    return found


@contextmanager
def ours(folder: Path) -> Iterator[Ledger]:
    """A user with one book of his own."""
    with holdfast(folder, LIFTED) as server:
        (owner,) = new_users(server, 1, "owner")
        server.headers = owner.headers
        book = new_book(server, owner, [])
        yield Ledger(
            server,
            create(book),
            batch(book),
            lambda count: fill(server, book, count),
            lambda: middle_of_feed(server),
            book=book,
        )


@contextmanager
def pocketbase(folder: Path) -> Iterator[Ledger]:
    row = json.dumps({"book": "b", "crt_user": "u", **BILL, "type": "1"})
    made = f'{{"method":"POST","url":"{pocketbase_server.RECORDS}","body":{row}}}'
    with pocketbase_server.pocketbase(folder) as server:
        yield Ledger(
            server,
            Post(pocketbase_server.RECORDS, row),
            Post("/api/batch", f'{{"requests":[{",".join([made] * BATCH)}]}}'),
            lambda count: pocketbase_server.fill(server, count),
            lambda: f"{pocketbase_server.RECORDS}?perPage=100&skipTotal=1",
        )


@contextmanager
def kinto(folder: Path) -> Iterator[Ledger]:
    row = json.dumps({"data": {"book_id": "b", "crt_user": "u", **BILL}})
    made = {"method": "POST", "path": kinto_server.RECORDS, "body": json.loads(row)}
    with kinto_server.kinto(folder) as running:
        since = f"_since={kinto_server.FIRST_MS + FILLED // 2 * 1_000}"
        yield Ledger(
            running.server,
            Post(kinto_server.RECORDS, row, may_be_refused=True),
            Post("/v1/batch", json.dumps({"requests": [made] * BATCH})),
            running.fill,
            lambda: f"{kinto_server.RECORDS}?{since}&_limit=100&_sort=last_modified",
        )
