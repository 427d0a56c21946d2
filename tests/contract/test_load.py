"""Many callers at once: few commits, and a heavy command beside small ones does not hold them up.

How fast it is stands in the bench; here are the bounds that must hold on any machine.
"""

from __future__ import annotations

import asyncio
import time
from itertools import count

from holdfast.metrics import Metrics
from tests.conftest import OpenStore
from tests.contract.notes import NOTES, add_row, push
from tests.servers.stores import SqliteStores

CALLERS = 64


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


async def test_small_writes_beside_heavy_ones_stay_under_20_ms(open_store: OpenStore) -> None:
    """Pushes of 1,000 rows and a sweep without a pause, and small writes at their own pace: the 99th percentile."""
    waits: list[float] = []
    async with open_store([NOTES]) as db:
        stop = False

        async def heavy(first: int) -> int:
            done = 0
            while not stop:
                await db.write_alone(push, first, 1000)
                done += 1
            return done

        async def small(first: int) -> None:
            for number in range(first, first + 150):
                started_at = time.perf_counter()
                await db.write(add_row, number)
                waits.append(time.perf_counter() - started_at)
                await asyncio.sleep(0.01)

        pushes = [asyncio.create_task(heavy(1_000_000 * n)) for n in (1, 2)]
        await asyncio.gather(*(small(10_000 * n) for n in range(1, 9)))
        stop = True
        assert sum(await asyncio.gather(*pushes)) >= 4
    waits.sort()
    assert waits[len(waits) * 99 // 100] < 0.020, [round(1000 * w, 1) for w in waits[-30:]]
