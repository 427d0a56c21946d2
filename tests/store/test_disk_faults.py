"""A disk that says no: full, broken at a write, broken at a sync. Each answer is right, and the store goes on or stops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.errors import DiskFull, OutcomeUnknown, StoreUnavailable
from holdfast.settings import Store
from holdfast.store import Database, StoreReset, Transaction
from tests.contract.notes import NOTES, Added, add, add_and_fail, half_applied, ids
from tests.servers.disk import Disk, io_error, no_room
from tests.servers.stores import SqliteStores


@pytest.fixture
def disk() -> Iterator[Disk]:
    made = Disk()
    yield made
    made.unregister()


@pytest.fixture
async def db(disk: Disk, tmp_path: Path) -> AsyncIterator[Database]:
    async with SqliteStores(tmp_path, disk.name)([NOTES]) as opened:
        yield opened


class Heard:
    """What the store said beside its answers."""

    def __init__(self, db: Database) -> None:
        self.added: list[int] = []
        self.resets = 0
        self.fatal: list[str] = []
        db.subscribe(Added, lambda event: self.added.append(event.number))
        db.subscribe(StoreReset, self._reset)
        db.on_fatal = self.fatal.append

    def _reset(self, _event: StoreReset) -> None:
        self.resets += 1


async def test_a_failed_sync_acknowledges_nobody_and_ends_the_store(disk: Disk, db: Database) -> None:
    heard = Heard(db)
    await db.write(add, 1)

    def fail(_path: str) -> None:
        raise io_error(apsw.SQLITE_IOERR_FSYNC)

    disk.on_sync = fail
    answers = await asyncio.gather(*(db.write(add, n) for n in range(2, 100)), return_exceptions=True)
    unknown = [answer for answer in answers if isinstance(answer, OutcomeUnknown)]
    assert unknown, "those that were in the commit"
    assert all(isinstance(answer, StoreUnavailable) for answer in answers), "and nobody after it"
    assert heard.added == [1]
    assert heard.resets == 1
    assert len(heard.fatal) == 1
    disk.on_sync = lambda _path: None
    with pytest.raises(StoreUnavailable):
        await db.write(add, 100)  # the disk seems well again, but nobody knows what it holds
    assert db.trouble is not None


async def test_a_failed_sync_in_the_middle_of_a_command_ends_the_store_too(
    disk: Disk, tmp_path: Path
) -> None:
    """A command larger than the cache writes to the log, and syncs, before its COMMIT."""
    async with SqliteStores(tmp_path, disk.name)([NOTES]) as db:
        heard = Heard(db)
        connection: apsw.Connection = db._connection  # type: ignore[attr-defined]
        connection.pragma("cache_size", 10)
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)  # the first write begins a new log
        reached_the_end = False

        def add_much_and_tell(tx: Transaction) -> None:
            nonlocal reached_the_end
            for number in range(200):
                add(tx, number, "x" * 4000)
            reached_the_end = True

        def fail(_path: str) -> None:
            raise io_error(apsw.SQLITE_IOERR_FSYNC)

        disk.on_sync = fail
        with pytest.raises(StoreUnavailable):
            await db.write(add_much_and_tell)
        assert not reached_the_end
        assert len(heard.fatal) == 1


async def test_a_full_disk_is_answered_reads_go_on_and_the_store_heals_by_itself(
    disk: Disk, db: Database
) -> None:
    heard = Heard(db)
    await db.write(add, 1)

    def fail(_path: str) -> None:
        raise no_room()

    disk.on_write = fail
    answers = await asyncio.gather(*(db.write(add, n) for n in range(2, 20)), return_exceptions=True)
    assert all(isinstance(answer, DiskFull) for answer in answers)
    assert db.trouble is not None
    assert await db.read(ids) == [1]
    assert await db.glance(half_applied) is None
    with pytest.raises(DiskFull):
        await db.write(add, 50)
    await db.write(lambda _tx: None)
    assert db.trouble is not None, "a commit that writes nothing proves nothing"
    disk.on_write = lambda _path: None
    async with asyncio.timeout(10):
        while db.trouble is not None:  # noqa: ASYNC110 - it is a property, to be asked
            await asyncio.sleep(0.05)  # nobody writes: it finds out by itself
    await db.write(add, 51)
    assert await db.read(ids) == [1, 51]
    assert heard.added == [1, 51]
    assert heard.fatal == []


@pytest.mark.parametrize("seed", range(20))
async def test_a_disk_that_fails_at_random_gets_every_answer_right(tmp_path: Path, seed: int) -> None:
    """What was answered with success is there, what was answered with a known error is not, all or nothing."""
    chance = random.Random(seed)
    disk = Disk()
    stores = SqliteStores(tmp_path, disk.name)
    async with stores([NOTES], Store(checkpoint_mib=1, truncate_mib=1)) as db:
        db._connection.pragma("cache_size", chance.choice([5, 50, 2000]))  # type: ignore[attr-defined]
        heard = Heard(db)

        def fail_sometimes(_path: str) -> None:
            if chance.random() < 0.01:
                raise chance.choice([no_room(), io_error(apsw.SQLITE_IOERR_WRITE)])

        disk.on_write = fail_sometimes
        done, failed, unknown = set[int](), set[int](), set[int]()

        async def caller(first: int) -> None:
            for number in range(first, first + 25):
                try:
                    if chance.random() < 0.2:
                        await db.write(add_and_fail, number, ValueError())
                    else:
                        await db.write(add, number, "x" * chance.randint(1, 5000))
                        done.add(number)
                except OutcomeUnknown:
                    unknown.add(number)
                except (ValueError, StoreUnavailable):
                    failed.add(number)

        await asyncio.gather(*(caller(100 * n) for n in range(1, 17)))
        disk.on_write = lambda _path: None
        assert await db.read(half_applied) is None
        there = set(await db.read(ids))
        assert done <= there
        assert not failed & there
        assert done, "some went through"
        assert set(heard.added) == done
        assert heard.fatal == []
        assert bool(unknown) == bool(heard.resets)
        await db.write(add, 1)
    disk.unregister()
    async with SqliteStores(tmp_path)([NOTES]) as db:
        assert set(await db.read(ids)) == there | {1}
        assert await db.read(half_applied) is None
    plain = apsw.Connection(stores.where)
    assert plain.pragma("integrity_check") == "ok"
    plain.close()


async def test_a_command_too_large_for_the_disk_spoils_no_neighbour(disk: Disk, db: Database) -> None:
    """SQLite undoes the whole group; each command runs again, alone, and only the large one hears of it."""
    db._connection.pragma("cache_size", 10)  # type: ignore[attr-defined]
    room = 60

    def fail(_path: str) -> None:
        nonlocal room
        room -= 1
        if room < 0:
            room = 60  # what it had written is undone, and its room is there again
            raise no_room()

    def add_much(tx: Transaction) -> None:
        for number in range(1000, 1200):
            add(tx, number, "x" * 4000)

    disk.on_write = fail
    answers = await asyncio.gather(
        *(db.write(add, n) for n in range(1, 6)),
        db.write(add_much),
        *(db.write(add, n) for n in range(6, 11)),
        return_exceptions=True,
    )
    assert isinstance(answers[5], DiskFull)
    assert [answer for answer in answers if not isinstance(answer, DiskFull)] == list(range(1, 11))
    assert await db.read(ids) == list(range(1, 11))
    assert await db.read(half_applied) is None


async def test_a_checkpoint_that_cannot_sync_ends_the_store(disk: Disk, tmp_path: Path) -> None:
    async with SqliteStores(tmp_path, disk.name)([NOTES], Store(checkpoint_mib=1)) as db:
        heard = Heard(db)

        def fail(path: str) -> None:
            if path.endswith(".db"):
                raise io_error(apsw.SQLITE_IOERR_FSYNC)

        disk.on_sync = fail
        async with asyncio.timeout(20):
            number = 0
            while not heard.fatal:
                number += 1
                with_room = await asyncio.gather(db.write(add, number, "x" * 50_000), return_exceptions=True)
                assert with_room[0] == number or isinstance(with_room[0], StoreUnavailable)
        with pytest.raises(StoreUnavailable):
            await db.write(add, 10**6)
        disk.on_sync = lambda _path: None
