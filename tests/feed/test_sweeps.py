"""Sweeps: what goes, what stays, and that the clock decides and not the position."""

from __future__ import annotations

from holdfast.feed import Change, Turn, lock_space, record, sweep
from holdfast.feed.sweep import GRACE_MS, TURN_ROWS
from holdfast.feed.verify import problems
from holdfast.store import Query, Transaction
from tests.conftest import OpenStore
from tests.feed.world import ITEM, KEEP_MS, ROOMS, Step, hashes, run, started

NOW = 1_750_000_000_000
OVER = NOW + KEEP_MS + GRACE_MS + 1
ANN, BOB = 1, 2

ROWS = Query(
    tuple[int, int, int],
    "SELECT (SELECT count(*) FROM feed_space), (SELECT count(*) FROM feed_log), (SELECT count(*) FROM feed_link)",
)


async def test_a_tombstone_goes_after_its_time_and_not_before(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(started)
        await db.write(run, NOW, [Step(1, "found", ANN), Step(1, "item", name="a"), Step(1, "kill")])
        assert await db.write(sweep, OVER - 1, KEEP_MS) == 0
        assert await db.write(sweep, OVER, KEEP_MS) == 1
        assert await db.write(sweep, OVER, KEEP_MS) == 0
        assert await db.read(lambda view: view.one(ROWS)) == (1, 1, 1)
        assert await db.read(lambda view: list(problems(view, hashes))) == []


async def test_positions_that_run_ahead_of_the_clock_keep_nothing_alive(open_store: OpenStore) -> None:
    """And positions that lag behind it, after the clock was set back, sweep nothing early."""
    async with open_store(ROOMS) as db:
        await db.write(started)
        far = NOW + 10 * KEEP_MS
        await db.write(
            run, far, [Step(1, "found", ANN), Step(1, "item", name="a"), Step(1, "item", name="b")]
        )
        await db.write(
            run, NOW, [Step(1, "kill")]
        )  # the clock is right again; the position stays beyond `far`
        assert await db.write(sweep, OVER, KEEP_MS) == 1


async def test_a_dead_link_goes_after_its_time_and_who_rejoined_stays(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(started)
        await db.write(run, NOW, [Step(1, "found", ANN), Step(1, "join", BOB)])
        await db.write(run, NOW, [Step(1, "join", 3)])
        await db.write(run, NOW, [Step(1, "leave", BOB)])
        await db.write(run, NOW, [Step(1, "leave", 3)])
        await db.write(run, NOW, [Step(1, "join", 3)])
        assert await db.write_in_turns(sweep, OVER, KEEP_MS) == 1
        assert await db.read(lambda view: view.one(ROWS)) == (1, 1, 2)


async def test_a_closed_space_goes_with_its_log_when_nobody_has_to_be_told_any_more(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await db.write(started)
        await db.write(run, NOW, [Step(1, "found", ANN), Step(2, "found", ANN), Step(1, "item", name="a")])
        await db.write(run, NOW, [Step(1, "close")])
        assert await db.write(sweep, OVER - 1, KEEP_MS) == 0
        await db.write_in_turns(sweep, OVER, KEEP_MS)
        assert await db.read(lambda view: view.one(ROWS)) == (1, 1, 1)
        assert await db.read(lambda view: list(problems(view, hashes))) == []


async def test_a_turn_removes_at_most_a_thousand_rows(open_store: OpenStore) -> None:
    def bury(tx: Transaction, rows: int) -> None:
        space = lock_space(tx, 1)
        assert space is not None
        record(tx, NOW, [Turn(space, tuple([Change(ITEM, f"t{n}", now=None) for n in range(rows)]))])

    async with open_store(ROOMS) as db:
        await db.write(started)
        await db.write(run, NOW, [Step(1, "found", ANN)])
        await db.write(bury, TURN_ROWS + 5)
        assert await db.write(sweep, OVER, KEEP_MS) == TURN_ROWS
        assert await db.write(sweep, OVER, KEEP_MS) == 5
        assert await db.write(sweep, OVER, KEEP_MS) == 0
