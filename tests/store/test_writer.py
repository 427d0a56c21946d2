"""The writer's thread: it outlives whatever happens in it, and gives way to nobody for ever."""

from __future__ import annotations

import asyncio
import time

import apsw
import pytest

from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.store import Statement, StoreReset, Transaction
from holdfast.store.sqlite.line import Line
from holdfast.store.sqlite.writer import Writer
from tests.contract.notes import NOTES, Added, add, half_applied, ids
from tests.servers.stores import SqliteStores


async def test_a_mistake_in_the_writer_itself_answers_everybody_and_ends_the_store(
    sqlite_stores: SqliteStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    async with sqlite_stores([NOTES]) as db:
        fatal: list[str] = []
        heard: list[object] = []
        db.on_fatal = fatal.append
        db.subscribe(Added, heard.append)
        db.subscribe(StoreReset, heard.append)
        monkeypatch.setattr(Writer, "_commit", mistaken)
        answers = await asyncio.gather(*(db.write(add, n) for n in range(50)), return_exceptions=True)
        assert any(isinstance(answer, OutcomeUnknown) for answer in answers)
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
        assert len(fatal) == 1
        assert "a mistake of ours" in fatal[0]
        assert [type(event) for event in heard] == [StoreReset]
        monkeypatch.undo()
        with pytest.raises(StoreUnavailable):
            await db.write(add, 100)
    async with sqlite_stores([NOTES]) as db:
        assert await db.read(ids) == []


async def test_a_neighbour_that_never_lets_go_is_answered_for_all_who_wait_at_once(
    sqlite_stores: SqliteStores,
) -> None:
    async with sqlite_stores([NOTES]) as db:
        patience = 0.3
        db._connection.set_busy_timeout(round(patience * 1000))  # type: ignore[attr-defined]
        neighbour = apsw.Connection(sqlite_stores.where)
        neighbour.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        answers = await asyncio.gather(
            *(db.write(add, n) for n in range(100)),
            *(db.write_alone(add, 1000 + n) for n in range(5)),
            return_exceptions=True,
        )
        assert time.monotonic() - started < 4 * patience
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)
        assert db.trouble is not None
        neighbour.execute("ROLLBACK")
        neighbour.close()
        assert await db.write(add, 1) == 1
        assert db.trouble is None
        assert await db.read(half_applied) is None


async def test_an_action_may_run_twice_and_its_last_run_counts(sqlite_stores: SqliteStores) -> None:
    """`ON CONFLICT ROLLBACK` undoes the group under our feet; the neighbours run again and are told once."""
    spoil = Statement("INSERT OR ROLLBACK INTO note (id, text) VALUES (:id, 'x')")
    runs: list[int] = []

    def counted(tx: Transaction, number: int) -> int:
        runs.append(number)
        return add(tx, number)

    async with sqlite_stores([NOTES]) as db:
        heard: list[int] = []
        db.subscribe(Added, lambda event: heard.append(event.number))
        await db.write(add, 1)
        answers = await asyncio.gather(
            *(db.write(counted, n) for n in range(10, 15)),
            db.write(lambda tx: tx.execute(spoil, id=1)),
            *(db.write(counted, n) for n in range(20, 25)),
            return_exceptions=True,
        )
        assert isinstance(answers[5], Exception)
        assert [answer for at, answer in enumerate(answers) if at != 5] == [*range(10, 15), *range(20, 25)]
        assert len(runs) > 10, "the group did fall apart"
        assert sorted(heard) == [1, *range(10, 15), *range(20, 25)]
        assert await db.read(half_applied) is None


def test_a_line_that_was_closed_serves_what_waits_and_then_ends() -> None:
    class Waiting:
        def __init__(self, name: str, *, alone: bool = False, given_up: bool = False) -> None:
            self.name, self.alone, self.given_up = name, alone, given_up

    dropped: list[str] = []
    line = Line(drop=lambda command: dropped.append(command.name))  # type: ignore[attr-defined]
    for command in (
        Waiting("a"),
        Waiting("heavy 1", alone=True),
        Waiting("gone", given_up=True),
        Waiting("b"),
        Waiting("heavy gone", alone=True, given_up=True),
        Waiting("heavy 2", alone=True),
        Waiting("c"),
    ):
        line.put(command)  # type: ignore[arg-type]
    line.close()
    served = []
    while (first := line.first()) is not None:
        group = [first]
        while not first.alone and (more := line.small()) is not None:
            group.append(more)
        served.append([command.name for command in group])  # type: ignore[attr-defined]
    assert served == [["a", "b", "c"], ["heavy 1"], ["heavy 2"]]
    assert sorted(dropped) == ["gone", "heavy gone"]
