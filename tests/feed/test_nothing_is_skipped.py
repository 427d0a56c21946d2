"""The promise of the whole product: whoever follows `next_since` misses nothing, whatever else goes on.

And the proof of the proof: with any one of three rules taken out, it finds followers that are wrong.
"""

from __future__ import annotations

import os

import pytest

from holdfast.metrics import Metrics
from tests.conftest import OpenStore
from tests.feed.race import Plan, Race
from tests.feed.world import ROOMS

ROUNDS = int(os.environ.get("HOLDFAST_RACES", "3"))


@pytest.mark.parametrize("seed", range(1, ROUNDS + 1))
async def test_nothing_is_skipped_while_everybody_writes(open_store: OpenStore, seed: int) -> None:
    metrics = Metrics()
    async with open_store(ROOMS, metrics=metrics) as db:
        outcome = await Race(db, Plan(seed)).run()
    print(outcome)
    assert outcome.wrong == []
    assert outcome.refused == 0
    assert b"holdfast_store_retries_total 0.0" in metrics.exposition()
