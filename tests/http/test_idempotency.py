"""`Idempotency-Key`: the same POST again gets the first answer, on both databases."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.errors import Forbidden, KeyReused
from holdfast.http.idempotency import HOURS, Key, once, sweep
from holdfast.store import Database, Query, Statement, Transaction
from holdfast.store.migrations import Migration, of_rooms
from tests.conftest import OpenStore

NOTES = Migration("notes", 1, "notes", "CREATE TABLE note (id BIGINT PRIMARY KEY)")
ADD = Statement("INSERT INTO note (id) SELECT coalesce(max(id), 0) + 1 FROM note")
LAST = Query(int, "SELECT max(id) FROM note")
COUNT = Query(int, "SELECT count(*) FROM note")
HOUR = 3_600_000


class Made(msgspec.Struct, frozen=True):
    number: int


def make(tx: Transaction, key: Key | None, now: int, *, fail: bool = False) -> Made:
    def add() -> Made:
        tx.execute(ADD)
        if fail:
            raise Forbidden
        return Made(tx.one(LAST))

    return once(tx, key, now, Made, add)


async def count(db: Database) -> int:
    return await db.read(lambda view: view.one(COUNT))


def key(name: str = "k", body: bytes = b"1", owner: int = 1) -> Key:
    return Key(owner, name, body)


async def test_the_same_key_gets_the_first_answer(open_store: OpenStore) -> None:
    async with open_store([*of_rooms("http"), NOTES]) as db:
        first = await db.write(make, key(), 0)
        assert await db.write(make, key(), 1) == first
        assert await count(db) == 1
        assert await db.write(make, key(owner=2), 1) != first
        assert await db.write(make, None, 1) != await db.write(make, None, 1)


async def test_also_while_the_first_is_under_way(open_store: OpenStore) -> None:
    async with open_store([*of_rooms("http"), NOTES]) as db:
        answers = await asyncio.gather(*[db.write(make, key(), 0) for _ in range(20)])
        assert set(answers) == {Made(1)}
        assert await count(db) == 1


async def test_another_body_under_the_same_key_is_a_conflict(open_store: OpenStore) -> None:
    async with open_store([*of_rooms("http"), NOTES]) as db:
        await db.write(make, key(), 0)
        with pytest.raises(KeyReused):
            await db.write(make, key(body=b"2"), 0)
        assert await count(db) == 1


async def test_a_request_that_failed_may_be_sent_again(open_store: OpenStore) -> None:
    async with open_store([*of_rooms("http"), NOTES]) as db:
        with pytest.raises(Forbidden):
            await db.write(make, key(), 0, fail=True)
        assert await db.write(make, key(), 0) == Made(1)


async def test_a_key_is_kept_for_a_day(open_store: OpenStore) -> None:
    async with open_store([*of_rooms("http"), NOTES]) as db:
        first = await db.write(make, key(), 0)
        assert await db.write_in_turns(sweep, HOURS * HOUR) == 0
        assert await db.write(make, key(), HOURS * HOUR) == first
        assert await db.write(make, key(body=b"2"), HOURS * HOUR + 1) != first
        assert await db.write_in_turns(sweep, 3 * HOURS * HOUR) == 1
