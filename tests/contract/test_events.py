"""Events: after the commit, in order, never for what was undone, and no handler can harm an answer."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.store import Transaction
from tests.conftest import OpenStore
from tests.contract.notes import NOTES, Added, add, add_and_fail, ids


class Louder(Added):
    """A child: whoever subscribed to `Added` does not hear it."""


async def test_events_come_after_the_commit_and_before_the_writer_goes_on(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        seen: list[tuple[int, bool]] = []
        reads: list[asyncio.Task[list[int]]] = []

        def hear(event: Added) -> None:
            seen.append((event.number, writer.done()))
            reads.append(asyncio.ensure_future(db.read(ids)))

        db.subscribe(Added, hear)
        writer = asyncio.create_task(db.write(add, 1))
        await writer
        assert seen == [(1, False)]
        assert await reads[0] == [1], "whoever reads because of an event finds what it is about"


async def test_events_of_one_writer_come_in_the_order_of_its_writes(open_store: OpenStore) -> None:
    def add_three(tx: Transaction, first: int) -> None:
        for number in range(first, first + 3):
            add(tx, number)

    async with open_store([NOTES]) as db:
        heard: list[int] = []
        db.subscribe(Added, lambda event: heard.append(event.number))

        async def writer(start: int) -> None:
            for number in range(start, start + 30, 3):
                await db.write(add_three, number)

        await asyncio.gather(*(writer(1000 * w) for w in range(8)))
        for w in range(8):
            assert [n for n in heard if n // 1000 == w] == list(range(1000 * w, 1000 * w + 30))


async def test_what_was_undone_is_not_told(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        heard: list[int] = []
        db.subscribe(Added, lambda event: heard.append(event.number))
        await asyncio.gather(
            db.write(add, 1),
            db.write(add_and_fail, 2, ValueError()),
            db.write(add, 1),
            db.write(add, 3),
            return_exceptions=True,
        )
        assert sorted(heard) == [1, 3]


async def test_a_handler_that_fails_takes_no_answer_away_and_the_others_still_hear(
    open_store: OpenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_store([NOTES]) as db:
        heard: list[int] = []

        def fail(event: Added) -> None:
            raise RuntimeError(f"a handler that cannot stand {event.number}")

        db.subscribe(Added, fail)
        db.subscribe(Added, lambda event: heard.append(event.number))
        assert await asyncio.gather(*(db.write(add, n) for n in range(5))) == list(range(5))
        assert sorted(heard) == list(range(5))


async def test_a_subscriber_hears_its_own_kind_and_nothing_else(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        heard: list[object] = []
        db.subscribe(Added, heard.append)
        await db.write(lambda tx: tx.after(Louder(1)))
        await db.write(lambda tx: tx.after("a text"))
        assert heard == []


async def test_a_writer_that_gave_up_too_late_is_committed_and_told_of(open_store: OpenStore) -> None:
    """The caller is gone; the others have to hear of what is there now."""
    async with open_store([NOTES]) as db:
        heard = asyncio.Event()
        db.subscribe(Added, lambda _event: heard.set())
        loop = asyncio.get_running_loop()

        def add_while_the_caller_leaves(tx: Transaction) -> None:
            add(tx, 1)
            gone = asyncio.run_coroutine_threadsafe(_cancel(writer), loop)
            gone.result(10)

        writer = asyncio.create_task(db.write(add_while_the_caller_leaves))
        with pytest.raises(asyncio.CancelledError):
            await writer
        await asyncio.wait_for(heard.wait(), 10)
        assert await db.read(ids) == [1]


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.sleep(0)
