"""What both databases promise."""

from __future__ import annotations

from holdfast.store import Query, Statement, Transaction
from holdfast.store.migrations import Migration
from tests.conftest import OpenStore

NOTES = Migration("notes", 1, "notes", "CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL)")
ADD = Statement("INSERT INTO note (id, text) VALUES (:id, :text)")
TEXT = Query(str, "SELECT text FROM note WHERE id = :id")


def add(tx: Transaction, number: int, text: str) -> int:
    tx.execute(ADD, id=number, text=text)
    return number


async def test_a_write_is_there_after_its_answer_and_after_a_restart(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        assert await db.write(add, 1, "milk") == 1
        assert await db.read(lambda view: view.row(TEXT, id=1)) == "milk"
    async with open_store([NOTES]) as db:
        assert await db.glance(lambda view: view.row(TEXT, id=1)) == "milk"
