"""Power failures at random moments under load: nothing acknowledged is lost, nothing is half applied.

SIGKILL cannot show this, the kernel keeps what was written. Here the disk keeps only what was synced (and, in the
other variants, a random part of what was not, torn at the borders of its sectors).
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import apsw
import pytest

from holdfast.errors import CannotStart, HoldfastError, ReadTooLong
from holdfast.settings import Store
from holdfast.store import Database
from tests.contract.notes import NOTES, add, half_applied, ids
from tests.servers.disk import Disk, Loss
from tests.servers.stores import SqliteStores

FAILURES = int(os.environ.get("POWER_FAILURES", "8"))
SMALL_LOG = Store(checkpoint_mib=1, truncate_mib=1, read_limit_ms=500)


@asynccontextmanager
async def load(db: Database, acknowledged: list[int]) -> AsyncIterator[None]:
    """Callers that write, a heavy one now and then, readers that hold snapshots: until the block ends."""
    stop = False
    numbers = count(1)

    async def writer() -> None:
        while not stop:
            number = next(numbers)
            await db.write(add, number, "x" * random.randint(1, 3000))
            acknowledged.append(number)

    async def heavy_writer() -> None:
        while not stop:
            await db.write_alone(_add_many, [next(numbers) for _ in range(50)])
            await asyncio.sleep(0.02)

    async def reader() -> None:
        while not stop:
            with suppress(ReadTooLong):
                assert await db.read(half_applied) is None

    work = [asyncio.create_task(job()) for job in (*[writer] * 12, heavy_writer, reader)]
    try:
        yield
    finally:
        stop = True
        await asyncio.gather(*work)


def _add_many(tx: object, numbers: list[int]) -> None:
    for number in numbers:
        add(tx, number)  # type: ignore[arg-type]


async def what_is_wrong_after(image: Path, acknowledged: list[int]) -> str | None:
    """Opens what the power failure left and looks for a lost or a half-applied write."""
    stores = SqliteStores(image)
    try:
        async with stores([NOTES], Store(read_limit_ms=60_000)) as db:
            there = set(await db.read(ids))
            lost = set(acknowledged) - there
            if lost:
                return f"{len(lost)} acknowledged writes are lost"
            if (half := await db.read(half_applied)) is not None:
                return half
            await db.write(add, 1_000_000_000)  # and it goes on from there
    except (CannotStart, HoldfastError) as error:
        return f"all is lost: {error}"
    plain = apsw.Connection(str(stores.path))
    found = plain.pragma("integrity_check")
    plain.close()
    return None if found == "ok" else f"integrity: {found}"


async def run_with_failures(folder: Path, loss: Loss, prepare: str | None = None) -> list[str]:
    """What went wrong at `FAILURES` random moments of one run."""
    chance = random.Random()
    disk = Disk(sync_seconds=0.001)
    troubles = []
    acknowledged: list[int] = []
    (folder / "live").mkdir()
    async with SqliteStores(folder / "live", disk.name)([NOTES], SMALL_LOG) as db:
        if prepare is not None:
            db._connection.pragma("synchronous", prepare)  # type: ignore[attr-defined]
        async with load(db, acknowledged):
            for failure in range(FAILURES):
                await asyncio.sleep(chance.uniform(0.01, 0.3))
                promised = list(acknowledged)  # before the picture is taken, so all of it must be on it
                image = folder / f"failure{failure}"
                await asyncio.to_thread(disk.image, image, loss, chance)
                found = await what_is_wrong_after(image, promised)
                if found is None:
                    shutil.rmtree(image)  # each is as large as the store, and there may be hundreds
                else:
                    troubles.append(f"failure {failure}, {len(promised)} acknowledged: {found}")
        if prepare is None:
            assert disk.syncs["holdfast.db"] > 3, "checkpoints were part of it"
            assert disk.syncs["holdfast.db-wal"] < len(acknowledged) / 2, "so was group commit"
    disk.unregister()
    return troubles


@pytest.mark.parametrize("loss", Loss, ids=lambda loss: loss.name.lower())
async def test_nothing_acknowledged_is_lost_and_nothing_is_half_applied(tmp_path: Path, loss: Loss) -> None:
    assert await run_with_failures(tmp_path, loss) == []


@pytest.mark.parametrize("synchronous", ["off", "normal"])
async def test_this_test_finds_the_loss_when_commits_are_not_synced(tmp_path: Path, synchronous: str) -> None:
    troubles = await run_with_failures(tmp_path, Loss.ALL, prepare=synchronous)
    assert any("lost" in trouble for trouble in troubles)
