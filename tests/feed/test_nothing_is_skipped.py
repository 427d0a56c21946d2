"""The promise of the whole product: whoever follows `next_since` misses nothing, whatever else goes on."""

from __future__ import annotations

import os

import pytest

from holdfast.metrics import Metrics
from tests.conftest import OpenStore
from tests.feed.authors import Habits
from tests.feed.chase import chase, one_snapshot
from tests.feed.race import Plan, race
from tests.feed.world import ROOMS

SCALE = int(os.environ.get("HOLDFAST_RACES", "1"))

PLANS = [
    Plan(1),
    Plan(2, Habits(pause=0.01, batches=0)),
    Plan(3, Habits(pause=0.01, batches=0, joins_without_a_change=1)),
    Plan(4, Habits(batches=1)),
]


@pytest.mark.parametrize("plan", [Plan(p.seed + 10 * n, p.habits) for n in range(SCALE) for p in PLANS])
async def test_nothing_is_skipped_while_everybody_writes(open_store: OpenStore, plan: Plan) -> None:
    metrics = Metrics()
    async with open_store(ROOMS, metrics=metrics) as db:
        outcome = await race(db, plan)
    assert outcome.wrong == []
    assert outcome.complaints == []
    assert outcome.refused == 0
    assert b"holdfast_store_retries_total 0.0" in metrics.exposition()
    assert outcome.written > 200


async def test_nothing_is_skipped_when_commits_fall_between_the_statements_of_a_page(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        outcome = await chase(db, one_snapshot(open_store), seed=1, pages=100 * SCALE)
    assert outcome.wrong == []
    assert outcome.complaints == []
    assert outcome.refused == 0
