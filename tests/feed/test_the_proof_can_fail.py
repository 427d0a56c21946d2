"""The proof of the proof: with one rule taken out, followers end up holding something else than the truth.

Each test breaks exactly one rule and races until somebody is wrong: not a page that looks odd, but a follower that
pulled once more after the last commit and is wrong for good. `test_nothing_is_skipped` runs the same races with the
rule in place. On SQLite there is one writer, so only the third rule can be broken there.
"""

from __future__ import annotations

import random
import time
from typing import TypeVar

import msgspec
import pytest

from holdfast.feed import Space, space
from holdfast.store import Database, Query, Transaction
from tests.conftest import OpenStore, PostgresqlStores
from tests.feed import world
from tests.feed.authors import Habits
from tests.feed.chase import Views, chase, no_snapshot, read_committed
from tests.feed.race import Plan, race
from tests.feed.world import ROOMS

R = TypeVar("R")

ROUNDS = 25


async def wrong_followers(db: Database, habits: Habits) -> list[str]:
    """Races until a follower is wrong; an empty list when nobody ever was."""
    for seed in range(1, ROUNDS + 1):
        outcome = await race(db, Plan(seed, habits))
        if outcome.wrong:
            return outcome.wrong
    return []


def without_lock(query: Query[R]) -> Query[R]:
    broken: Query[R] = Query.__new__(Query)
    broken.make = query.make  # type: ignore[misc]
    broken.lists, broken.sqlite = query.lists, query.sqlite  # type: ignore[misc]
    broken.postgresql = query.postgresql.replace("FOR NO KEY UPDATE", "")  # type: ignore[misc]
    assert broken.postgresql != query.postgresql
    return broken


async def test_without_the_lock_of_the_space_followers_end_up_wrong(
    postgresql_store: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "LOCK", without_lock(space.LOCK))
    monkeypatch.setattr(space, "LOCK_MANY", without_lock(space.LOCK_MANY))
    async with postgresql_store(ROOMS) as db:
        assert await wrong_followers(db, Habits(pause=0.01, batches=0, joins_without_a_change=1))


async def test_with_members_read_before_the_lock_followers_end_up_wrong(
    postgresql_store: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def members_first(tx: Transaction, key: int) -> Space | None:
        members = tuple(tx.rows(space.MEMBERS, space=key))
        time.sleep(random.random() * 0.005)
        locked = space.lock_space(tx, key)
        return locked and msgspec.structs.replace(locked, members=members)

    monkeypatch.setattr(world, "lock_space", members_first)
    async with postgresql_store(ROOMS) as db:
        assert await wrong_followers(db, Habits(pause=0.01, batches=0))


async def test_with_members_read_in_the_statement_that_locks_followers_end_up_wrong(
    postgresql_store: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement looks as if it could not go wrong; but it reads the links of before it waited."""
    both = Query(
        tuple[int, int, int, int, int, int | None, list[int] | None],
        """
        SELECT seq, cseq, head, live, digest, closed_ms,
            (SELECT array_agg(owner) FROM feed_link l WHERE l.space = s.space AND inside)
        FROM feed_space s WHERE space = :space FOR NO KEY UPDATE OF s
        """,
    )

    def in_one_statement(tx: Transaction, key: int) -> Space | None:
        row = tx.row(both, space=key)
        return row and Space(key, *row[:5], row[5] is None, tuple(row[6] or ()))

    monkeypatch.setattr(world, "lock_space", in_one_statement)
    async with postgresql_store(ROOMS) as db:
        assert await wrong_followers(db, Habits(pause=0.01, batches=0))


async def wrong_followers_of(db: Database, views: Views) -> list[str]:
    for seed in range(1, ROUNDS + 1):
        outcome = await chase(db, views, seed, pages=100)
        if outcome.wrong:
            return outcome.wrong
    return []


async def test_with_a_page_read_in_several_snapshots_followers_end_up_wrong(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        assert await wrong_followers_of(db, no_snapshot(open_store))


async def test_with_a_page_read_in_one_transaction_that_is_no_snapshot_followers_end_up_wrong(
    postgresql_store: PostgresqlStores,
) -> None:
    async with postgresql_store(ROOMS) as db:
        assert await wrong_followers_of(db, read_committed(postgresql_store))
