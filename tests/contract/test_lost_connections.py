"""PostgreSQL goes away, in part or altogether: nothing is acknowledged that is not there, and it comes back by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from holdfast.errors import DiskFull, OutcomeUnknown, StoreUnavailable
from holdfast.settings import Store
from holdfast.settings.fields import MIB
from holdfast.store import Database, Query, Statement, StoreReset, Transaction
from holdfast.store.migrations import Migration
from tests.contract.notes import COPIES, NOTES, Added, add, half_applied, ids
from tests.servers.postgresql import Postgresql
from tests.servers.stores import PostgresqlStores

KILL_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast %'"
MY_PID = Query(int, "SELECT pg_backend_pid()")
SLEEP = Query(str, "SELECT pg_sleep(0.3)::text")

# a COMMIT that takes its time: the connection can be killed in the middle of it
SLOW_COMMIT = Migration(
    "slow",
    1,
    "slow",
    """
    CREATE TABLE slow (id BIGINT PRIMARY KEY);
    CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(10); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION dawdle();
    """,
)
ADD_SLOW = Statement("INSERT INTO slow VALUES (:id)")
COMMITTING = Query(int, "SELECT count(*) FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'")


async def test_a_command_whose_connection_is_killed_runs_again_on_another(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores
) -> None:
    pids: list[int] = []

    def add_and_be_killed(tx: Transaction) -> None:
        pids.append(tx.one(MY_PID))
        add(tx, 1)
        if len(pids) == 1:
            postgresql.execute(f"SELECT pg_terminate_backend({pids[0]})")
        tx.one(SLEEP)

    async with postgresql_stores([NOTES]) as db:
        heard: list[Added] = []
        db.subscribe(Added, heard.append)
        await db.write(add_and_be_killed)
        assert len(set(pids)) == 2
        assert await db.read(ids) == [1]
        assert await db.read(half_applied) is None
        assert len(heard) == 1


async def test_idle_connections_that_were_all_killed_cost_nobody_an_answer(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores
) -> None:
    async with postgresql_stores([NOTES], Store(pool=8)) as db:
        await asyncio.gather(*(db.write(add, n) for n in range(50)), *(db.read(ids) for _ in range(50)))
        postgresql.execute(KILL_ALL)
        answers = await asyncio.gather(*(db.write(add, n) for n in range(100, 150)))
        assert answers == list(range(100, 150))
        postgresql.execute(KILL_ALL)
        assert await asyncio.gather(*(db.read(half_applied) for _ in range(20))) == [None] * 20


async def test_a_connection_killed_in_its_commit_has_an_unknown_outcome(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores
) -> None:
    def add_slowly(tx: Transaction) -> None:
        tx.execute(ADD_SLOW, id=1)
        tx.after(Added(1))

    async with postgresql_stores([NOTES, SLOW_COMMIT]) as db:
        heard: list[object] = []
        db.subscribe(Added, heard.append)
        db.subscribe(StoreReset, heard.append)
        writing = asyncio.create_task(db.write(add_slowly))
        await until_one(db, COMMITTING)
        postgresql.execute(KILL_ALL)
        with pytest.raises(OutcomeUnknown):
            await writing
        await asyncio.sleep(0)
        assert [type(event) for event in heard] == [StoreReset]
        await db.write(add, 2)
        assert await db.read(ids) == [2]


async def until_one(db: Database, query: Query[int]) -> None:
    async with asyncio.timeout(10):
        while await db.read(lambda view: view.one(query)) != 1:  # noqa: ASYNC110 - the server knows, and does not tell
            await asyncio.sleep(0.02)


async def test_a_server_that_is_down_is_answered_within_the_timeout_and_heals_by_itself(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores
) -> None:
    """All who wait get their answer within the same few seconds, however many they are."""
    async with postgresql_stores([NOTES], Store(pool=4, connect_timeout=2.0)) as db:
        await db.write(add, 1)
        postgresql.kill()
        try:
            started = time.monotonic()
            answers = await asyncio.gather(
                *(db.write(add, 100 + n) for n in range(100)),
                *(db.read(ids) for _ in range(100)),
                return_exceptions=True,
            )
            assert time.monotonic() - started < 2 * 2.0 + 4
            assert all(isinstance(answer, StoreUnavailable) for answer in answers)
            assert db.trouble is not None
        finally:
            postgresql.start()
        async with asyncio.timeout(15):
            while db.trouble is not None:  # noqa: ASYNC110 - it is a property, to be asked
                await asyncio.sleep(0.05)
        assert await db.read(ids) == [1]
        await db.write(add, 2)


async def test_a_server_killed_under_load_keeps_all_that_was_acknowledged(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores
) -> None:
    acknowledged: list[int] = []
    unknown: list[int] = []
    async with postgresql_stores([NOTES], Store(pool=4, connect_timeout=3.0)) as db:
        stop = False

        async def writer(number: int) -> None:
            while not stop:
                number += 1
                try:
                    await db.write(add, number)
                    acknowledged.append(number)
                except StoreUnavailable:
                    unknown.append(number)

        writers = [asyncio.create_task(writer(1_000_000 * n)) for n in range(8)]
        for _ in range(3):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(postgresql.kill)
            await asyncio.to_thread(postgresql.start)
            await db_is_well(db)
        stop = True
        await asyncio.gather(*writers)
        there = set(await db.read(ids))
        assert acknowledged
        assert set(acknowledged) <= there
        assert there <= set(acknowledged) | set(unknown)
        assert await db.read(half_applied) is None


async def db_is_well(db: Database) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await db.write(lambda _tx: None)
            except StoreUnavailable:
                continue
            return


@pytest.fixture
def small_disk(postgresql: Postgresql) -> Iterator[int]:
    """The server may make no file larger than this, which ends within a page: its last write is cut short."""
    room = 20 * MIB + 1000  # more than one file of its write-ahead log
    postgresql.stop()
    postgresql.start(largest_file=room)
    yield room
    postgresql.stop()
    postgresql.start()


async def test_a_disk_without_room_is_answered_reads_go_on_and_room_is_used_again(
    small_disk: int, postgresql_stores: PostgresqlStores
) -> None:
    plain = Statement("ALTER TABLE note ALTER COLUMN text SET STORAGE PLAIN")  # a page for each note
    fill = Statement("INSERT INTO note SELECT n, repeat('x', 7000) FROM generate_series(1, :pages) AS n")
    make_room = Statement("DELETE FROM note WHERE id <= 100")
    pages = small_disk // 8192
    async with postgresql_stores([NOTES]) as db:
        await db.write(lambda tx: tx.execute(plain))
        await db.write(lambda tx: tx.execute(fill, pages=pages))
        with pytest.raises(DiskFull):
            await db.write(add, 10_000, "y" * 7000)
        assert db.trouble is not None
        assert len(await db.read(ids)) == pages
        assert await db.read(lambda view: view.rows(COPIES)) == []
        await db.write(lambda tx: tx.execute(make_room))
        with psycopg.connect(postgresql_stores.url, autocommit=True) as operator:
            operator.execute("VACUUM note")
        assert await db.write(add, 10_001, "z" * 7000) == 10_001
        assert db.trouble is None
