"""The row locks, on PostgreSQL: inside its transactions, where `test_races` does not look when it goes step by step.

Every statement is followed by a pause, so that transactions overlap in all their parts. With the locks nothing goes
wrong; without them references are lost within a few races.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from holdfast.blobs import queries as sql
from holdfast.blobs.model import Blob
from holdfast.metrics import Metrics
from holdfast.store import Query
from holdfast.store.postgresql.connection import PostgresqlTransaction
from tests.blobs.test_races import MIGRATIONS, race
from tests.conftest import OpenStore, PostgresqlStores
from tests.servers.postgresql import Postgresql

R = TypeVar("R")


@pytest.fixture
def postgresql_store(postgresql: Postgresql) -> OpenStore:
    return PostgresqlStores(postgresql.new_database(f"locks_{time.monotonic_ns()}"))


@pytest.fixture
def slow_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Callable[..., object] = PostgresqlTransaction.row
    choices = random.Random(3)

    def row(self: PostgresqlTransaction, query: Query[R], **parameters: str | int) -> object:
        answer = honest(self, query, **parameters)
        time.sleep(choices.random() * 0.004)
        return answer

    monkeypatch.setattr(PostgresqlTransaction, "row", row)


async def races_until_something_is_wrong(store: OpenStore, folder: Path, races: int) -> int:
    async with store(MIGRATIONS) as one, store(MIGRATIONS) as two:
        for seed in range(races):
            try:
                await race([one, two], folder / "blobs", seed, users=6)
            except* Exception:  # noqa: BLE001 - whatever is noticed first
                seed = -seed - 1
            if seed < 0:
                return -seed
    return 0


@pytest.mark.usefixtures("slow_statements")
async def test_with_the_locks_overlapping_transactions_keep_every_promise(
    postgresql_store: OpenStore, tmp_path: Path
) -> None:
    counted = Metrics()
    async with postgresql_store(MIGRATIONS, metrics=counted) as one, postgresql_store(MIGRATIONS) as two:
        for seed in range(6):
            await race([one, two], tmp_path / "blobs", seed, users=6)
    # a deadlock would have been counted before it was tried again
    assert "holdfast_store_retries_total 0.0" in counted.exposition().decode()


@pytest.mark.usefixtures("slow_statements")
async def test_without_the_locks_a_race_goes_wrong(
    postgresql_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOCK", "LOCK_IF_FREE"):
        monkeypatch.setattr(sql, name, Query(Blob, sql.FIND.sqlite))
    assert await races_until_something_is_wrong(postgresql_store, tmp_path, 60)
