"""What a ledger's costs depend on: bills in the store, members of a book, and books that come and go as a whole."""

from __future__ import annotations

import http.client
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from bench import ledgers, tree
from bench.ledgers import FILLED, Ledger
from bench.load import paced, wrk
from bench.load.paced import Latency
from bench.processes import Talker, talker
from bench.scenario import Values
from bench.servers import Refused, Server
from bench.users import User, new_users

PACE = 200
SECONDS = 3.0
BOOKS = 3
JOINS = 20


class Store(Struct):
    """Our ledger, and a load at a pace: a store of 1,000 bills would not stay one under as many as it can take."""

    ledger: Ledger
    load: Talker
    shared: dict[int, tuple[str, User]] = {}
    """Members → a book of so many, and its owner."""
    big: list[tuple[str, User]] = []

    @property
    def server(self) -> Server:
        return self.ledger.server

    def fill_to(self, count: int) -> None:
        self.ledger.fill_to(count)

    def page(self, seconds: float) -> Values:
        return wrk.requests_per_second(
            self.server, seconds, what=ledgers.middle_of_feed(self.server), connections=4
        )

    def create(self, _seconds: float) -> Values:
        assert self.ledger.owner is not None
        return self._paced(self.ledger.book, self.ledger.owner)

    def share(self, members: int) -> None:
        """A book with so many members, its owner among them."""
        users = new_users(self.server, members, f"member-{secrets.token_hex(4)}")
        self.shared[members] = ledgers.new_book(self.server, users[0], users[1:]), users[0]

    def create_shared(self, _seconds: float, *, members: int) -> Values:
        return self._paced(*self.shared[members])

    def _paced(self, book: str, who: User) -> Values:
        used = tree.cpu_seconds(self.server.pid)
        said = self.load.ask(self._plan(book, who), Latency, SECONDS + 60)
        if said.failed or said.unanswered:
            raise Refused(f"{said.failed} of {said.sent} bills failed, {said.unanswered} had no answer")
        return {
            "cpu": (tree.cpu_seconds(self.server.pid) - used) / said.sent * 1e6,
            "p50": said.p50,
            "p99": said.p99,
        }

    def _plan(self, book: str, who: User) -> paced.Plan:
        request = paced.request(ledgers.create(book), who.headers)
        return paced.Plan(self.server.http, [request], PACE, SECONDS)

    def make_big_books(self) -> None:
        for _ in range(BOOKS):
            (owner,) = new_users(self.server, 1, f"big-{secrets.token_hex(4)}")
            book = ledgers.new_book(self.server, owner, [])
            ledgers.fill(self.server, book, FILLED, owner.headers)
            self.big.append((book, owner))

    def come_and_go(self, _seconds: float) -> Values:
        """Somebody joins and leaves a big book, again and again, and big books are deleted, beside the others' writes."""
        assert self.ledger.owner is not None
        alone = self._paced(self.ledger.book, self.ledger.owner)
        (newcomer,) = new_users(self.server, 1, f"newcomer-{secrets.token_hex(4)}")
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(self._paced, self.ledger.book, self.ledger.owner)
            time.sleep(SECONDS / 10)
            came = self._joins_and_leaves(newcomer)
            deleted = [
                _timed(self.server, "DELETE", f"/api/v1/books/{book}", owner) for book, owner in self.big
            ]
            others = beside.result()
        return {
            "join": max(join for join, _ in came),
            "leave": max(leave for _, leave in came),
            "delete": max(deleted),
            "alone": alone["p99"],
            "beside": others["p99"],
        }

    def _joins_and_leaves(self, newcomer: User) -> list[tuple[float, float]]:
        book, owner = self.big[0]
        code = ledgers.share_code(self.server, book, owner)
        leave = f"/api/v1/books/{book}/members/{newcomer.id}"
        return [
            (
                _timed(self.server, "POST", "/api/v1/books/join", newcomer, {"code": code}),
                _timed(self.server, "DELETE", leave, newcomer),
            )
            for _ in range(JOINS)
        ]


def _timed(
    server: Server, method: str, path: str, who: User, body: Mapping[str, object] | None = None
) -> float:
    """Milliseconds of one request, its connection not counted."""
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.connect()
    sent = msgspec.json.encode(body) if body is not None else None
    headers = {**who.headers, "Content-Type": "application/json"}
    began = time.perf_counter()
    connection.request(method, path, sent, headers)
    answer = connection.getresponse()
    raw = answer.read()
    took = (time.perf_counter() - began) * 1000
    connection.close()
    if answer.status >= 300:
        raise Refused(f"{method} {path}: {answer.status} {raw[:300]!r}")
    return took


@contextmanager
def store(folder: Path) -> Iterator[Store]:
    with ledgers.ours(folder) as ledger, talker("bench.load.paced", folder / "paced") as load:
        yield Store(ledger, load)


def with_members(members: int) -> tuple[Callable[[Store], None], Callable[[Store, float], Values]]:
    """How a book of so many is made, and what a bill in it costs."""
    return lambda store: store.share(members), lambda store, seconds: store.create_shared(
        seconds, members=members
    )
