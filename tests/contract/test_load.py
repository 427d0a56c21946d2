"""Many callers at once: few commits, and a heavy command beside small ones does not hold them up.

How fast it is stands in the bench; here are the bounds that must hold on any machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store import Database, Query, Statement, Transaction
from tests.conftest import OpenStore
from tests.contract.notes import NOTES, add_row, push
from tests.servers.starvation import Starvation
from tests.servers.stores import SqliteStores

CALLERS = 64
BACKENDS = Query(
    int,
    """
    --sqlite:     SELECT 0 WHERE false
    --postgresql: SELECT pid FROM pg_stat_activity WHERE datname = current_database()
    """,
)
SWEEP = Statement("DELETE FROM note WHERE id IN (SELECT id FROM note WHERE text = 'pushed' LIMIT 1000)")


def commits_and_commands(metrics: Metrics) -> tuple[float, float]:
    lines = dict(
        line.rsplit(" ", 1) for line in metrics.exposition().decode().splitlines() if line[:1] != "#"
    )
    return float(lines["holdfast_store_commits_total"]), float(lines["holdfast_store_commands_total"])


async def test_64_callers_share_their_commits(sqlite_stores: SqliteStores) -> None:
    """At most 0.1 commits per write, while each caller waits for its answer before it writes again."""
    metrics = Metrics()
    numbers = count()
    async with sqlite_stores([NOTES], metrics=metrics) as db:

        async def caller() -> None:
            for _ in range(40):
                await db.write(add_row, next(numbers))

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        commits, commands = commits_and_commands(metrics)
    assert commands == CALLERS * 40
    assert commits / commands <= 0.1


async def small_writes_beside(db: Database, heavy: Callable[[], Awaitable[object]]) -> list[float]:
    """What each of a few hundred small writes took while `heavy` ran again and again; in order of time."""
    taken: list[float] = []
    stop = False
    heavy_runs = 0

    async def heavy_without_a_pause() -> None:
        nonlocal heavy_runs
        while not stop:
            await heavy()
            heavy_runs += 1

    async def small(first: int) -> None:
        for number in range(first, first + 150):
            before, started = starvation.now(), time.perf_counter()
            await db.write(add_row, number)
            taken.append(time.perf_counter() - started - starvation.since(before))
            await asyncio.sleep(0.01)

    await asyncio.gather(*(db.write(add_row, -n) for n in range(50)))  # every thread and connection is there
    backends = await db.read(lambda view: view.rows(BACKENDS))
    starvation = Starvation(threads="holdfast-", processes=backends)
    running = asyncio.create_task(heavy_without_a_pause())
    await asyncio.gather(*(small(10_000 * n) for n in (1, 2, 3, 4)))
    stop = True
    await running
    starvation.close()
    assert heavy_runs >= 3
    return sorted(taken)


@pytest.fixture
def without_disk(request: pytest.FixtureRequest) -> Iterator[OpenStore]:
    """These bounds are about what we do, not about who else keeps this disk busy: SQLite's file is in memory."""
    if "postgresql" in request.node.name:
        yield request.getfixturevalue("postgresql_stores")
        return
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield SqliteStores(Path(folder))


on_both = pytest.mark.parametrize("backend", ["sqlite", "postgresql"])


@on_both
async def test_small_writes_beside_pushes_of_1000_rows_stay_under_20_ms(
    without_disk: OpenStore, backend: str
) -> None:
    async with without_disk([NOTES], Store(pool=4)) as db:
        taken = await small_writes_beside(db, lambda: db.write_alone(push, 1_000_000, 1000))
    assert taken[len(taken) * 99 // 100] < 0.020, [round(1000 * seconds, 1) for seconds in taken[-20:]]


async def test_small_writes_beside_several_pushes_that_wait_stay_under_20_ms(
    without_disk: OpenStore,
) -> None:
    """Heavy commands queue apart: one small command never waits for two of them."""
    async with without_disk([NOTES]) as db:

        def eight_pushes() -> Awaitable[object]:
            return asyncio.gather(*(db.write_alone(push, 1_000_000 * n, 1000) for n in range(1, 9)))

        taken = await small_writes_beside(db, eight_pushes)
    assert taken[len(taken) * 99 // 100] < 0.020, [round(1000 * seconds, 1) for seconds in taken[-20:]]


@on_both
async def test_small_writes_beside_a_sweep_stay_under_20_ms(without_disk: OpenStore, backend: str) -> None:
    def turn(tx: Transaction) -> int:
        return tx.execute(SWEEP)

    async with without_disk([NOTES], Store(pool=4)) as db:

        async def push_and_sweep() -> None:
            for n in (1, 2, 3):
                await db.write_alone(push, 1_000_000 * n, 1000)
            assert await db.write_in_turns(turn) == 3000

        taken = await small_writes_beside(db, push_and_sweep)
    assert taken[len(taken) * 99 // 100] < 0.020, [round(1000 * seconds, 1) for seconds in taken[-20:]]


async def test_a_small_write_waits_for_one_heavy_one_at_the_most(sqlite_stores: SqliteStores) -> None:
    """The rule behind the bound, without a clock."""
    order: list[str] = []

    def note(_tx: Transaction, name: str) -> None:
        order.append(name)

    async with sqlite_stores([NOTES]) as db:
        waiting = [asyncio.ensure_future(db.write_alone(note, "heavy")) for _ in range(10)]
        waiting += [asyncio.ensure_future(db.write(note, "small")) for _ in range(200)]
        await asyncio.gather(*waiting)
    assert "small" in order[:3], order[:12]
    assert "heavy" not in order[order.index("small") :][:10], "small ones still share their commit"
    assert order.count("heavy") == 10
    last_heavy = len(order) - 1 - order[::-1].index("heavy")
    groups = [name for at, name in enumerate(order[:last_heavy]) if at == 0 or name != order[at - 1]]
    assert groups[:4] in (["heavy", "small", "heavy", "small"], ["small", "heavy", "small", "heavy"])
