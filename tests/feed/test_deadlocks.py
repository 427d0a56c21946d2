"""Writers never wait for each other in a circle: batches over several spaces, people joining several at once."""

from __future__ import annotations

import asyncio
import random
import sys

import pytest

from holdfast.clock import SystemClock
from holdfast.feed import record, space
from holdfast.metrics import Metrics
from holdfast.store import Database, Query
from tests.conftest import PostgresqlStores
from tests.feed.world import ROOMS, Step, run, started

FEW = range(1, 4)
"""Any two batches meet in a space."""
MANY = range(1, 16)
"""Most pairs of batches share no space, and meet in the feeds of their members alone."""
NO_RETRIES = b"holdfast_store_retries_total 0.0"

SPACES_IN_NO_ORDER = Query(
    tuple[int, int, int, int, int, int, int | None],
    """
    WITH one_by_one AS (
        SELECT space, seq, cseq, head, live, digest, closed_ms FROM feed_space
        WHERE space = ANY(:spaces) ORDER BY random() FOR NO KEY UPDATE
    )
    SELECT space, seq, cseq, head, live, digest, closed_ms FROM one_by_one WHERE pg_sleep(0.002) IS NOT NULL
    """,
)
FEEDS_IN_NO_ORDER = Query(
    int,
    """
    WITH one_by_one AS (SELECT last FROM feed_owner WHERE owner = ANY(:owners) ORDER BY random() FOR NO KEY UPDATE),
    locked AS (SELECT last, pg_sleep(0.002) FROM one_by_one),
    start AS (SELECT GREATEST(:floor, max(last) + 1) AS first FROM locked WHERE pg_sleep IS NOT NULL)
    UPDATE feed_owner SET last = start.first + :span - 1 FROM start WHERE owner = ANY(:owners)
    RETURNING last - :span + 1
    """,
)


async def collide(db: Database, spaces: range, writes: int) -> list[object]:
    """Eight writers over spaces with the same five members; the newcomers have no feed yet, and come into
    several spaces in several transactions at once. Answers what went wrong."""
    await db.write(started)
    now_ms = SystemClock().now_ms()
    for key in spaces:
        joins = [Step(key, "join", owner, quiet=True) for owner in range(2, 6)]
        await db.write(run, now_ms, [Step(key, "found", 1), *joins])

    async def write(number: int) -> None:
        rng = random.Random(number)
        for n in range(writes):
            keys = rng.sample(spaces, 2)
            newest = 100 + n // 3
            steps = [Step(key, "item", name=f"t{number}-{n}-{key}") for key in keys]
            steps += [Step(key, "join", rng.randint(newest, newest + 3), quiet=True) for key in keys]
            await db.write(run, SystemClock().now_ms(), steps, rng.random() * 0.002)

    done = await asyncio.gather(*[write(number) for number in range(8)], return_exceptions=True)
    return [error for error in done if error is not None]


@pytest.mark.parametrize("spaces", [FEW, MANY])
async def test_no_transaction_is_ever_run_again(postgresql_store: PostgresqlStores, spaces: range) -> None:
    metrics = Metrics()
    async with postgresql_store(ROOMS, metrics=metrics) as db:
        assert await collide(db, spaces, writes=40) == []
    assert NO_RETRIES in metrics.exposition()


async def test_spaces_locked_in_no_order_deadlock(
    postgresql_store: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above can fail."""
    monkeypatch.setattr(space, "LOCK_MANY", SPACES_IN_NO_ORDER)
    assert await retries(postgresql_store, FEW)


async def test_feeds_locked_in_no_order_deadlock(
    postgresql_store: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[record.__module__], "TAKE", FEEDS_IN_NO_ORDER)
    assert await retries(postgresql_store, MANY)


async def retries(store: PostgresqlStores, spaces: range) -> bool:
    metrics = Metrics()
    async with store(ROOMS, metrics=metrics) as db:
        await collide(db, spaces, writes=4)
    return NO_RETRIES not in metrics.exposition()
