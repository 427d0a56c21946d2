"""What is asked for often runs together, and nobody can tell: each has an answer, an error and a commit of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import NotFound
from holdfast.store import Transaction
from tests.conftest import OpenStore
from tests.contract.notes import NOTES, Added, add, ids
from tests.servers.stores import SqliteStores

MISTAKEN = 13
"""Makes the action itself raise; other odd numbers are refused."""


class Adding:
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, tx: Transaction, numbers: Sequence[int]) -> list[int | Exception]:
        self.sizes.append(len(numbers))
        return [self._one(tx, number) for number in numbers]

    def _one(self, tx: Transaction, number: int) -> int | Exception:
        if number == MISTAKEN:
            raise ZeroDivisionError
        return NotFound() if number % 2 else add(tx, number)


async def test_each_has_its_own_answer_or_error(open_store: OpenStore) -> None:
    adding = Adding()
    async with open_store([NOTES]) as db:
        heard: list[int] = []
        db.subscribe(Added, lambda event: heard.append(event.number))
        answers = await asyncio.gather(
            *(db.write_together(adding, n) for n in range(12)), return_exceptions=True
        )
        assert answers[::2] == [0, 2, 4, 6, 8, 10]
        assert all(isinstance(answer, NotFound) for answer in answers[1::2])
        assert sorted(heard) == [0, 2, 4, 6, 8, 10]
        assert await db.read(ids) == [0, 2, 4, 6, 8, 10]


async def test_a_mistake_with_one_of_them_harms_nobody_else(open_store: OpenStore) -> None:
    adding = Adding()
    async with open_store([NOTES]) as db:
        heard: list[int] = []
        db.subscribe(Added, lambda event: heard.append(event.number))
        answers = await asyncio.gather(
            *(db.write_together(adding, n) for n in (10, 11, 12, MISTAKEN, 14)), return_exceptions=True
        )
        assert [answers[n] for n in (0, 2, 4)] == [10, 12, 14]
        assert isinstance(answers[1], NotFound)
        assert isinstance(answers[3], ZeroDivisionError)
        assert sorted(heard) == [10, 12, 14]
        assert await db.read(ids) == [10, 12, 14]


async def test_on_sqlite_those_who_wait_are_run_by_one_call_and_others_keep_their_place(
    sqlite_stores: SqliteStores,
) -> None:
    first, second = Adding(), Adding()
    go_on = threading.Event()

    def hold(_tx: Transaction) -> None:
        go_on.wait(10)

    async with sqlite_stores([NOTES]) as db:
        held = asyncio.ensure_future(db.write(hold))
        await asyncio.sleep(0)
        waiting = [
            *(asyncio.ensure_future(db.write_together(first, n)) for n in range(0, 10, 2)),
            asyncio.ensure_future(db.write(add, 100)),
            *(asyncio.ensure_future(db.write_together(second, n)) for n in range(10, 16, 2)),
            asyncio.ensure_future(db.write_together(first, 16)),
        ]
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(held, *waiting)
        assert first.sizes == [5, 1]
        assert second.sizes == [3]
        assert len(await db.read(ids)) == 10


async def test_an_action_that_answers_too_few_is_run_for_each_alone(sqlite_stores: SqliteStores) -> None:
    def forgetful(tx: Transaction, numbers: Sequence[int]) -> list[int]:
        return [add(tx, number) for number in numbers][:1]

    go_on = threading.Event()

    def hold(_tx: Transaction) -> None:
        go_on.wait(10)

    async with sqlite_stores([NOTES]) as db:
        held = asyncio.ensure_future(db.write(hold))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(db.write_together(forgetful, n)) for n in range(4)]
        await asyncio.sleep(0)
        go_on.set()
        await held
        assert await asyncio.gather(*waiting) == [0, 1, 2, 3]
        assert await db.read(ids) == [0, 1, 2, 3]


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["together", "other", "alone"]), st.booleans()), max_size=80))
async def test_whatever_waits_beside_them_everybody_is_answered_once(
    sqlite_stores: SqliteStores, asked: list[tuple[str, bool]]
) -> None:
    adding = Adding()
    async with sqlite_stores([NOTES]) as db:
        before = set(await db.read(ids))
        base = max(before, default=0) // 2 * 2 + 1_000
        wanted = {base + 2 * n: good for n, (_, good) in enumerate(asked)}
        numbers = [number if good else number + 1 for number, good in wanted.items()]

        async def one(kind: str, number: int) -> object:
            if kind == "together":
                return await db.write_together(adding, number)
            write = db.write if kind == "other" else db.write_alone
            return await write(lambda tx: adding(tx, [number])[0])

        answers = await asyncio.gather(
            *(one(kind, number) for (kind, _), number in zip(asked, numbers, strict=True)),
            return_exceptions=True,
        )
        for answer, (number, good) in zip(answers, wanted.items(), strict=True):
            assert answer == number if good else isinstance(answer, NotFound)
        assert set(await db.read(ids)) - before == {number for number, good in wanted.items() if good}
