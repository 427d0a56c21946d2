"""Commits put between the statements of one page: what `race` leaves to chance, done on purpose.

Followers are at the head, a few writes come, and while one of them reads its next page more are committed between
any two of the page's statements. Then it catches up in peace, and must hold the truth.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import psycopg

from holdfast.clock import SystemClock
from holdfast.feed import Ask
from holdfast.store import Database, Query, Snapshot
from holdfast.store.postgresql.connection import PostgresqlSnapshot
from holdfast.store.sqlite.connection import SqliteSnapshot, open_reader
from holdfast.store.statement import Parameter
from tests.conftest import OpenStore, PostgresqlStores, SqliteStores
from tests.feed.authors import OWNERS, Authors, Habits
from tests.feed.follower import Follower
from tests.feed.race import Outcome, judge, settle
from tests.feed.world import Delivery, deliver

R = TypeVar("R")

Views = Callable[[], AbstractContextManager[Snapshot]]


class Interrupted(Snapshot):
    """A view that does something else after each statement."""

    def __init__(self, view: Snapshot, between: Callable[[], None]) -> None:
        self.backend = view.backend
        self._view = view
        self._between = between

    def row(self, query: Query[R], **parameters: Parameter) -> R | None:
        found = self._view.row(query, **parameters)
        self._between()
        return found

    def rows(self, query: Query[R], **parameters: Parameter) -> list[R]:
        found = self._view.rows(query, **parameters)
        self._between()
        return found


def one_snapshot(store: OpenStore) -> Views:
    """Each view is one snapshot, as the rule says."""
    return _views(store, "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "COMMIT")


def no_snapshot(store: OpenStore) -> Views:
    """Each statement of a view sees what is committed by then."""
    return _views(store, "SELECT 1", "SELECT 1", "SELECT 1")


def read_committed(store: PostgresqlStores) -> Views:
    """One transaction, which on PostgreSQL is not enough."""
    return _views(store, "", "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", "COMMIT")


def _views(store: OpenStore, sqlite_begins: str, postgresql_begins: str, ends: str) -> Views:
    @contextmanager
    def view() -> Iterator[Snapshot]:
        if isinstance(store, SqliteStores):
            reader = open_reader(store.path, None)
            reader.execute(sqlite_begins).fetchall()
            yield SqliteSnapshot(reader)
            reader.execute(ends).fetchall()
            reader.close()
            return
        assert isinstance(store, PostgresqlStores)
        with psycopg.connect(store.url, autocommit=True) as connection:
            connection.execute(postgresql_begins.encode())
            yield PostgresqlSnapshot(connection)
            connection.execute(ends.encode())

    return view


async def chase(db: Database, views: Views, seed: int, pages: int) -> Outcome:
    """Reads `pages` interrupted pages, or fewer when a follower is wrong before."""
    outcome = Outcome()
    rng = random.Random(seed)
    authors = Authors(db, seed, Habits(pause=0, batches=0.3))
    loop = asyncio.get_running_loop()
    await authors.start()
    followers = [Follower(owner) for owner in OWNERS]

    def write_a_few() -> None:
        if rng.random() < 0.4:
            for _ in range(rng.randint(3, 8)):
                asyncio.run_coroutine_threadsafe(authors.write(), loop).result(30)

    def read(ask: Ask) -> Delivery:
        with views() as view:
            return deliver(Interrupted(view, write_a_few), ask, SystemClock().now_ms())

    while outcome.pages < pages and not outcome.wrong:
        follower = rng.choice(followers)
        await settle(db, follower, rng)
        for _ in range(rng.randint(1, 4)):
            await authors.write()
        limit = rng.randint(1, 3)
        follower.take(await asyncio.to_thread(read, follower.ask(limit)), limit)
        outcome.pages += 1
        await settle(db, follower, rng)
        await judge(db, follower, outcome)
    outcome.written, outcome.refused = authors.written, authors.refused
    return outcome
