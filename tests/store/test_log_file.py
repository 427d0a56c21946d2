"""The write-ahead log stays bounded, whatever is read beside the writing; two processes share one file."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from holdfast.errors import ReadTooLong
from holdfast.settings import Store
from holdfast.settings.fields import MIB
from holdfast.store import Database, Snapshot
from tests.contract.notes import COUNT_SLOWLY, NOTES, add, half_applied, ids
from tests.servers.stores import SqliteStores


def size_of(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


async def hammer(db: Database, log: Path, total: int) -> int:
    """Writes `total` bytes and more; the largest size that the log was seen with."""
    largest = 0
    for number in range(total // 100_000):
        await asyncio.gather(*(db.write(add, 10 * number + n, "x" * 10_000) for n in range(10)))
        largest = max(largest, size_of(log))
    return largest


async def read_without_a_gap(db: Database, stop: asyncio.Event) -> None:
    """Readers that each hold their snapshot up to the limit, one beginning while the other is at it."""

    def count_until_cut(view: Snapshot) -> None:
        view.rows(COUNT_SLOWLY)

    async def one_after_the_other() -> None:
        while not stop.is_set():
            with pytest.raises(ReadTooLong):
                await db.read(count_until_cut)

    first = asyncio.create_task(one_after_the_other())
    await asyncio.sleep(0.15)
    await asyncio.gather(first, one_after_the_other())


async def test_the_log_stays_bounded_while_readers_overlap_without_a_gap(sqlite_stores: SqliteStores) -> None:
    settings = Store(checkpoint_mib=1, truncate_mib=4, read_limit_ms=300, readers=2)
    log = Path(sqlite_stores.where + "-wal")
    async with sqlite_stores([NOTES], settings) as db:
        stop = asyncio.Event()
        reading = asyncio.create_task(read_without_a_gap(db, stop))
        largest = await hammer(db, log, 40 * MIB)
        stop.set()
        await reading
        assert await db.read(half_applied) is None
    # twice the mark, where the writer becomes patient, and what a group may add
    assert largest < (2 * 4 + 3) * MIB


async def test_the_log_is_cut_while_the_checkpointer_has_its_hands_full(sqlite_stores: SqliteStores) -> None:
    """SQLite refuses a second checkpoint at once, whatever the timeout: the two must not meet."""
    log = Path(sqlite_stores.where + "-wal")
    async with sqlite_stores([NOTES], Store(checkpoint_mib=1, truncate_mib=2)) as db:
        largest = await hammer(db, log, 40 * MIB)
    assert largest < (2 * 2 + 3) * MIB


async def test_a_store_that_was_closed_leaves_no_log(sqlite_stores: SqliteStores) -> None:
    async with sqlite_stores([NOTES]) as db:
        await asyncio.gather(*(db.write(add, n) for n in range(100)))
    assert size_of(Path(sqlite_stores.where + "-wal")) == 0


NEIGHBOUR = """
import asyncio, sys
from tests.contract.notes import NOTES, add
from tests.servers.stores import stores_at

async def main() -> None:
    async with stores_at(sys.argv[1])([NOTES]) as db:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for number in range(10**6, 10**6 + 200):
            await db.write(add, number)

asyncio.run(main())
"""


async def test_two_processes_on_one_file_wait_for_each_other(sqlite_stores: SqliteStores) -> None:
    """The command line beside the server."""
    async with sqlite_stores([NOTES], Store(checkpoint_mib=1, truncate_mib=1)) as db:
        neighbour = await asyncio.create_subprocess_exec(
            sys.executable, "-c", NEIGHBOUR, sqlite_stores.where, stdin=PIPE, stdout=PIPE
        )
        assert neighbour.stdout is not None
        while await neighbour.stdout.readline() != b"ready\n":
            pass
        done = asyncio.create_task(neighbour.communicate(b"go\n"))
        written = 0
        while not done.done():
            await db.write(add, written, "x" * 2000)
            written += 1
        assert neighbour.returncode == 0
        assert await db.read(half_applied) is None
        assert len(await db.read(ids)) == written + 200
