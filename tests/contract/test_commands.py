"""One command among others: what it is answered, and what its neighbours notice of it (nothing)."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import ActionFailed, AlreadyThere, Forbidden, OutcomeUnknown
from holdfast.metrics import Metrics
from holdfast.store import Query, Snapshot, Statement, StoreReset, Transaction
from tests.conftest import OpenStore
from tests.contract.notes import ADD, LINK, NOTES, TEXT, Added, add, add_and_fail, add_row, half_applied, ids


async def test_a_write_is_there_after_its_answer_and_after_a_restart(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        assert await db.write(add, 1, "milk") == 1
        assert await db.read(lambda view: view.row(TEXT, id=1)) == "milk"
    async with open_store([NOTES]) as db:
        assert await db.glance(lambda view: view.row(TEXT, id=1)) == "milk"


async def test_a_command_that_fails_is_undone_alone_and_its_neighbours_in_the_batch_stay(
    open_store: OpenStore,
) -> None:
    async with open_store([NOTES]) as db:
        mistakes = {n: ValueError(f"mistake {n}") for n in range(0, 100, 7)}
        answers = await asyncio.gather(
            *(
                db.write(add_and_fail, n, mistakes[n]) if n in mistakes else db.write(add, n)
                for n in range(100)
            ),
            return_exceptions=True,
        )
        for number, answer in enumerate(answers):
            assert answer is mistakes[number] if number in mistakes else answer == number
        assert await db.read(ids) == [n for n in range(100) if n not in mistakes]
        assert await db.read(half_applied) is None


async def test_an_action_answers_with_the_error_that_it_raised(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        with pytest.raises(Forbidden, match="not yours"):
            await db.write(add_and_fail, 1, Forbidden("not yours"))
        with pytest.raises(KeyError, match="a mistake"):
            await db.write(add_and_fail, 1, KeyError("a mistake"))
        with pytest.raises(KeyError, match="a mistake"):
            await db.read(_raise, KeyError("a mistake"))
        assert await db.read(ids) == []


def _raise(_view: Snapshot, error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), StopIteration(), GeneratorExit(), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
async def test_an_error_that_would_end_a_thread_or_a_task_is_answered_as_a_mistake_and_the_store_goes_on(
    open_store: OpenStore, error: BaseException
) -> None:
    async with open_store([NOTES]) as db:
        failing, neighbour, reading = await asyncio.gather(
            db.write(add_and_fail, 1, error),
            db.write(add, 2),
            db.read(_raise, error),
            return_exceptions=True,
        )
        assert isinstance(failing, ActionFailed)
        assert failing.__cause__ is error
        assert isinstance(reading, ActionFailed)
        assert neighbour == 2
        assert await db.write(add, 3) == 3
        assert await db.read(ids) == [2, 3]


async def test_many_rows_are_written_in_one_go_each_value_at_its_name(open_store: OpenStore) -> None:
    rows = [(number, f"note {number}") for number in range(500)]
    async with open_store([NOTES]) as db:
        await db.write(lambda tx: tx.execute_many(ADD, rows))
        assert await db.read(lambda view: view.row(TEXT, id=499)) == "note 499"
        with pytest.raises(AlreadyThere):
            await db.write(lambda tx: tx.execute_many(ADD, [(1_000, "new"), (499, "there already")]))
        await db.write(lambda tx: tx.execute_many(ADD, []))
        assert await db.read(ids) == list(range(500))


async def test_a_row_that_is_there_already_answers_already_there(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        await db.write(add, 1, "milk")
        with pytest.raises(AlreadyThere):
            await db.write(add, 1, "bread")
        assert await db.read(lambda view: view.row(TEXT, id=1)) == "milk"


async def test_an_action_catches_already_there_in_a_savepoint_and_goes_on(open_store: OpenStore) -> None:
    def add_or_take_the_next(tx: Transaction, number: int) -> int:
        tx.execute(ADD, id=100 + number, text="before")
        try:
            with tx.savepoint():
                tx.after(Added(number))
                tx.execute(ADD, id=number, text="first choice")
        except AlreadyThere:
            number += 1
            tx.execute(ADD, id=number, text="second choice")
        return number

    async with open_store([NOTES]) as db:
        heard: list[int] = []
        db.subscribe(Added, lambda event: heard.append(event.number))
        await db.write(add_row, 1)
        assert await db.write(add_or_take_the_next, 1) == 2
        assert await db.read(ids) == [1, 2, 101]
        assert heard == [], "what was said in the part that was undone was not said"


async def test_an_action_that_swallows_a_failed_statement_is_undone_on_both(open_store: OpenStore) -> None:
    def swallow(tx: Transaction) -> str:
        add_row(tx, 2)
        try:
            add_row(tx, 1)
        except AlreadyThere:
            return "as if nothing had been"
        return "unreachable"

    async with open_store([NOTES]) as db:
        await db.write(add_row, 1)
        with pytest.raises(ActionFailed, match="savepoint"):
            await db.write(swallow)
        assert await db.read(ids) == [1]


async def test_a_deferred_constraint_fails_its_own_command_and_no_neighbour(open_store: OpenStore) -> None:
    def link(tx: Transaction, number: int, note: int) -> None:
        add(tx, number)
        tx.execute(LINK, id=number, note=note)

    async with open_store([NOTES]) as db:
        resets: list[StoreReset] = []
        db.subscribe(StoreReset, resets.append)
        answers = await asyncio.gather(
            *(db.write(link, n, 999 if n == 5 else n) for n in range(10)), return_exceptions=True
        )
        failed = [n for n, answer in enumerate(answers) if answer is not None]
        assert failed == [5]
        assert not isinstance(answers[5], OutcomeUnknown), "the database said no: the outcome is known"
        assert await db.read(ids) == [n for n in range(10) if n != 5]
        assert await db.read(half_applied) is None
        assert resets == []


async def test_a_statement_that_is_wrong_is_the_actions_mistake_and_not_the_stores_trouble(
    open_store: OpenStore,
) -> None:
    wrong = Statement("INSERT INTO nowhere VALUES (1)")
    async with open_store([NOTES]) as db:
        with pytest.raises(Exception, match="nowhere"):
            await db.write(lambda tx: tx.execute(wrong))
        assert db.trouble is None


async def test_a_write_that_was_cancelled_while_it_waited_is_not_run(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        waiting = [asyncio.create_task(db.write(add, n)) for n in range(2000)]
        await asyncio.sleep(0)
        for task in waiting[1000:]:
            task.cancel()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert answers[:1000] == list(range(1000))
        assert all(isinstance(answer, asyncio.CancelledError) for answer in answers[1000:])
        written = await db.read(ids)
        assert set(range(1000)) <= set(written)
        assert len(written) < 2000, "most of the cancelled ones were still waiting"
        assert await db.read(half_applied) is None
        assert await db.write(add, 5000) == 5000


async def test_parameters_come_back_as_they_were_given(open_store: OpenStore) -> None:
    table = Statement("CREATE TABLE kept (id BIGINT, b BYTEA, t TEXT, f DOUBLE PRECISION)")
    put = Statement("INSERT INTO kept VALUES (:id, :b, :t, :f)")
    get = Query(tuple[int, bytes, str, float], "SELECT id, b, t, f FROM kept WHERE id = ANY(:ids)")
    like = Query(int, "SELECT id FROM kept WHERE t LIKE '100%' AND t <> :t")
    rows = [
        (2**63 - 1, b"\x00\xff", "100% 'quoted' :name %s ünïcödé 🎵", 0.1),
        (-(2**63), b"", "", -1e300),
    ]
    async with open_store([NOTES]) as db:
        await db.write(lambda tx: tx.execute(table))
        for number, data, text, size in rows:
            await db.write(lambda tx, n=number, b=data, t=text, f=size: tx.execute(put, id=n, b=b, t=t, f=f))
        found = await db.read(lambda view: view.rows(get, ids=[number for number, *_ in rows]))
        assert sorted(found) == sorted(rows)
        assert await db.read(lambda view: view.rows(get, ids=[])) == []
        assert await db.read(lambda view: view.rows(like, t="")) == [2**63 - 1]


async def test_groups_are_counted_and_every_write_has_its_place_in_them(open_store: OpenStore) -> None:
    metrics = Metrics()
    async with open_store([NOTES], metrics=metrics) as db:
        await asyncio.gather(*(db.write(add_row, n) for n in range(200)))
        text = metrics.exposition().decode()
        assert "holdfast_store_commands_total 200.0" in text
        assert "holdfast_store_waiting 0.0" in text
