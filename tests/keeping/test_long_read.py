"""A check or a backup reads for long; the writer of the server beside it does not wait for that."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from holdfast.settings import Store
from holdfast.settings.fields import MIB
from holdfast.store import Statement, Transaction
from holdfast.store.sqlite import SqliteDatabase
from holdfast.store.sqlite.long_read import is_read_long, long_read
from tests.contract.notes import NOTES
from tests.keeping.conftest import NewGround

ADD = Statement("INSERT INTO note (id, text) VALUES (:id, :text)")
PATIENT = Store(truncate_mib=1, checkpoint_mib=1, read_limit_ms=2_000)


def add(tx: Transaction, number: int) -> None:
    tx.execute(ADD, id=number, text="x" * 100_000)


async def test_no_writer_waits_for_a_long_read_however_long_the_log_grows(new_ground: NewGround) -> None:
    """Without the mark it would wait 4.5 s at twice the length at which the log is cut."""
    ground = new_ground("sqlite")
    ground.kept.folder.create()
    database = ground.kept.folder.database
    db = SqliteDatabase(database, PATIENT)
    await db.start([NOTES])
    try:
        await db.write(add, 0)
        number, slowest = 0, 0.0
        with ground.kept.store.snapshot():
            end = (
                time.monotonic() + 2.0
            )  # a first try that finds a reader in the way is repeated half a second later
            while time.monotonic() < end:
                number += 1
                began = time.monotonic()
                await db.write(add, number)
                slowest = max(slowest, time.monotonic() - began)
                await asyncio.sleep(0.03)
            assert slowest < 4.0
            assert log_bytes(database) > 2 * MIB, "the log never grew: this proves nothing"
        async with asyncio.timeout(20):  # the log is cut again when the long read is over
            while log_bytes(database) > 2 * MIB:
                number += 1
                await db.write(add, number)
    finally:
        await db.stop()


def log_bytes(database: Path) -> int:
    return database.with_name(database.name + "-wal").stat().st_size


def test_the_mark_goes_with_whoever_made_it(tmp_path: Path) -> None:
    database = tmp_path / "holdfast.db"
    assert not is_read_long(database)
    with long_read(database), long_read(database):
        assert is_read_long(database)
    assert not is_read_long(database)
