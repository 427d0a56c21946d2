"""Migrations: each once, in order, under a lock; all of them or none."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

from holdfast.errors import CannotStart
from holdfast.store import Query
from holdfast.store.migrations import Migration, of_rooms
from tests.conftest import OpenStore
from tests.contract.migrator import MORE, TALLY
from tests.contract.notes import NOTES, add, ids

TABLES = Query(
    str,
    """
    --sqlite:     SELECT name FROM sqlite_master WHERE type = 'table'
    --postgresql: SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'
    """,
)


async def test_migrations_are_applied_once_and_what_is_new_is_added(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        await db.write(add, 1)
    for _ in range(2):
        async with open_store(MORE) as db:
            assert await db.read(lambda view: view.rows(TALLY)) == list(range(1, 29))
            assert await db.read(ids) == [1]


async def test_several_processes_that_start_at_once_migrate_once(open_store: OpenStore) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.contract.migrator", open_store.where, stdin=PIPE, stdout=PIPE
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
    told = await asyncio.wait_for(asyncio.gather(*(p.communicate(b"go\n") for p in processes)), 60)
    for process, (output, _) in zip(processes, told, strict=True):
        assert process.returncode == 0
        assert output.decode().splitlines()[-1] == str(list(range(1, 29)))


async def test_a_migration_that_fails_leaves_nothing_of_it_nor_of_those_before(open_store: OpenStore) -> None:
    broken = Migration("notes", 2, "broken", "CREATE TABLE half (id BIGINT); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(CannotStart, match=r"notes/0002_broken.*nowhere"):
        async with open_store([NOTES, broken]):
            pytest.fail("it started")
    async with open_store([]) as db:
        assert await db.read(lambda view: view.rows(TABLES)) == ["schema_migration"]
    mended = Migration("notes", 2, "mended", "CREATE TABLE half (id BIGINT)")
    async with open_store([NOTES, mended]) as db:
        assert "half" in await db.read(lambda view: view.rows(TABLES))


async def test_a_store_from_a_newer_version_is_refused_and_not_touched(open_store: OpenStore) -> None:
    async with open_store(MORE) as db:
        await db.write(add, 1)
    other = Migration("other", 1, "other", "CREATE TABLE other (id BIGINT)")
    with pytest.raises(CannotStart, match="newer"):
        async with open_store([NOTES, other]):
            pytest.fail("it started")
    async with open_store(MORE) as db:
        assert await db.read(ids) == [1]
        assert "other" not in await db.read(lambda view: view.rows(TABLES))


async def test_a_store_with_a_room_that_this_command_does_not_carry_is_opened(open_store: OpenStore) -> None:
    """`holdfast broker` on a folder that `holdfast serve` has used."""
    other = Migration("other", 1, "other", "CREATE TABLE other (id BIGINT)")
    async with open_store([NOTES, other]):
        pass
    async with open_store([NOTES]) as db:
        assert await db.read(ids) == []


async def test_every_rooms_own_migrations_run_on_both(open_store: OpenStore) -> None:
    rooms = of_rooms("store")
    assert [(m.room, m.number) for m in rooms] == [("store", 1)]
    async with open_store(rooms) as db:
        assert "meta" in await db.read(lambda view: view.rows(TABLES))


async def test_a_store_that_did_not_start_stops_without_a_word(open_store: OpenStore) -> None:
    broken = Migration("notes", 1, "broken", "NO SQL AT ALL")
    db = open_store.make()
    with pytest.raises(CannotStart):
        await db.start([broken])
    assert db.trouble is not None
    await db.stop()
