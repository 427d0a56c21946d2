"""Ledgers that are measured: ours, and what its peers have that comes nearest. Each says what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench.load.login import Login
from bench.load.notified import Listen
from bench.load.post import ID, Ids, Post
from bench.peers import kinto as kinto_server
from bench.peers import pocketbase as pocketbase_server
from bench.processes import Talker, talker
from bench.servers import Server, call, holdfast
from bench.users import LIFTED, User, new_users

BATCH = 500
"""Rows of a batch: the most that ours takes."""
FILLED = 100_000
MEMBERS = 4
BILL: dict[str, object] = {
    "money": 12.34,
    "type": 1,
    "category": "food",
    "time": "2026-02-18",
    "remark": "lunch with four",
}


class Ledger(Struct):
    """A running ledger, and what a request to it looks like. A contender has what its steps ask for."""

    server: Server
    create: Post | None = None
    shared: Post | None = None
    """A bill in a book of five, of whom four are told."""
    batch: Post | None = None
    fill: Callable[[int], None] | None = None
    """So many more entities."""
    page: Callable[[], str] | None = None
    """The path of a page of 100 from the middle of what is there."""
    nothing: Callable[[], str] | None = None
    """The path of a request that has nothing to bring: an empty pull."""
    owner: User | None = None
    book: str = ""
    listen: Callable[[], None] | None = None
    """From here on the members of the shared book hear of what is in it."""
    filled: int = 0

    def fill_to(self, count: int) -> None:
        assert self.fill is not None
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
        code = share_code(server, book, owner)
        for member in members:
            call(server, "POST", "/api/v1/books/join", {"code": code}, member.headers)
    return book


def share_code(server: Server, book: str, owner: User) -> str:
    return str(_data(call(server, "POST", f"/api/v1/books/{book}/share", {}, owner.headers))["code"])


def fill(server: Server, book: str, count: int, headers: Mapping[str, str]) -> None:
    """Bills through the door, in batches."""
    ids = Ids()
    for rows in (*[BATCH] * (count // BATCH), count % BATCH):
        if rows:
            post = batch(book, rows)
            call(server, post.method, post.path, json.loads(ids.filled(post.body)), headers)


def middle_of_feed(server: Server) -> str:
    """A pull of 100 that begins in the middle of what this user's feed holds by time."""
    page = _data(call(server, "GET", "/api/v1/sync/changes?since=0&limit=1"))
    return f"/api/v1/sync/changes?since={(int(str(page['next_since'])) + head(server)) // 2}&limit=100"


def head(server: Server) -> int:
    """The newest version in this user's feed."""
    return int(str(_data(call(server, "GET", "/api/v1/sync/checksum"))["version"]))


def empty_pull(server: Server) -> str:
    return f"/api/v1/sync/changes?since={head(server)}&limit=100"


def _data(answer: dict[str, object]) -> dict[str, object]:
    found = answer["data"]
    assert isinstance(found, dict)
    return found


@contextmanager
def ours(folder: Path) -> Iterator[Ledger]:
    """A user with a book of his own, and one that he shares with four who listen."""
    with (
        holdfast(folder, LIFTED) as server,
        talker("bench.load.notified", folder / "listeners") as listeners,
    ):
        owner, *members = new_users(server, 1 + MEMBERS, "owner")
        server.headers = owner.headers
        book, shared = new_book(server, owner, []), new_book(server, owner, members)
        logins = [Login(member.id, member.token) for member in members]
        yield Ledger(
            server,
            create(book),
            create(shared),
            batch(book),
            lambda count: fill(server, book, count, owner.headers),
            lambda: middle_of_feed(server),
            lambda: empty_pull(server),
            owner,
            book,
            lambda: _listen(listeners, server, logins),
        )


def _listen(listeners: Talker, server: Server, logins: list[Login]) -> None:
    listeners.ask(Listen(server.addresses["mqtt"], logins), dict[str, float], 30)


@contextmanager
def noop(folder: Path) -> Iterator[Ledger]:
    """Another of ours, asked for nothing but who is asking: what the door alone can do."""
    with holdfast(folder, LIFTED) as server:
        server.headers = new_users(server, 1)[0].headers
        yield Ledger(server, nothing=lambda: "/auth/me")


@contextmanager
def pocketbase(folder: Path) -> Iterator[Ledger]:
    row = json.dumps({"book": "b", "crt_user": "u", **BILL, "type": "1"})
    made = f'{{"method":"POST","url":"{pocketbase_server.RECORDS}","body":{row}}}'
    with pocketbase_server.pocketbase(folder) as server:
        yield Ledger(
            server,
            Post(pocketbase_server.RECORDS, row),
            Post(pocketbase_server.RECORDS, row),
            Post("/api/batch", f'{{"requests":[{",".join([made] * BATCH)}]}}'),
            lambda count: pocketbase_server.fill(server, count),
            lambda: f"{pocketbase_server.RECORDS}?perPage=100&skipTotal=1",
        )


@contextmanager
def kinto(folder: Path) -> Iterator[Ledger]:
    row = json.dumps({"data": {"book_id": "b", "crt_user": "u", **BILL}})
    with kinto_server.kinto(folder) as running:
        since = kinto_server.FIRST_MS + FILLED // 2 * 1_000
        yield Ledger(
            running.server,
            Post(kinto_server.RECORDS, row, may_be_refused=True),
            fill=running.fill,
            page=lambda: f"{kinto_server.RECORDS}?_since={since}&_limit=100&_sort=last_modified",
        )
