"""Readers: one snapshot each, for a limited time, beside whatever is written."""

from __future__ import annotations

import asyncio
import time
from threading import Event

import pytest

from holdfast.errors import ActionFailed, ReadTooLong
from holdfast.settings import Store
from holdfast.store import Query, Snapshot
from tests.conftest import OpenStore
from tests.contract.notes import COUNT_SLOWLY, IDS, NOTES, add, half_applied, ids


async def test_a_reader_sees_one_snapshot_while_others_write(open_store: OpenStore) -> None:
    def look_twice(view: Snapshot) -> tuple[list[int], list[int]]:
        before = view.rows(IDS)
        looked.set()
        assert written.wait(10)
        return before, view.rows(IDS)

    looked, written = Event(), Event()
    async with open_store([NOTES]) as db:
        await db.write(add, 1)
        reading = asyncio.create_task(db.read(look_twice))
        assert await asyncio.to_thread(looked.wait, 10)
        await asyncio.gather(*(db.write(add, n) for n in range(2, 20)))
        assert await db.read(ids) == list(range(1, 20)), "another reader sees what was acknowledged"
        written.set()
        assert await reading == ([1], [1])


async def test_no_reader_ever_sees_a_command_in_part(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        stop = False

        async def read_on() -> int:
            looks = 0
            while not stop:
                assert await db.read(half_applied) is None
                looks += 1
            return looks

        readers = [asyncio.create_task(read_on()) for _ in range(3)]
        await asyncio.gather(*(db.write(add, n) for n in range(500)))
        stop = True
        assert sum(await asyncio.gather(*readers)) > 0


async def test_a_long_reader_is_cut_at_the_limit_and_the_next_one_reads(open_store: OpenStore) -> None:
    async with open_store([NOTES], Store(read_limit_ms=300, readers=1, pool=1)) as db:
        started = time.monotonic()
        with pytest.raises(ReadTooLong):
            await db.read(lambda view: view.one(COUNT_SLOWLY))
        assert 0.25 < time.monotonic() - started < 2.0
        assert await db.read(ids) == []
        assert db.trouble is None, "a reader that was cut says nothing about the store"


async def test_many_short_statements_together_are_cut_at_the_limit_too(open_store: OpenStore) -> None:
    def look_for_ever(view: Snapshot) -> None:
        while True:
            view.rows(IDS)

    async with open_store([NOTES], Store(read_limit_ms=300)) as db:
        started = time.monotonic()
        with pytest.raises(ReadTooLong):
            await db.read(look_for_ever)
        assert time.monotonic() - started < 2.0


async def test_a_query_cannot_write(open_store: OpenStore) -> None:
    sneaky = Query(int, "INSERT INTO note (id, text) VALUES (1, 'x') RETURNING id")
    async with open_store([NOTES]) as db:
        for read in (db.read, db.glance):
            with pytest.raises(ActionFailed, match="tried to write"):
                await read(lambda view: view.row(sneaky))
        assert await db.read(ids) == []
        assert db.trouble is None
