"""The line in front of the store is bounded; stopping serves it; nobody is forgotten."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from holdfast.errors import QueueFull, Stopping
from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store import Transaction
from tests.conftest import OpenStore
from tests.contract.notes import NOTES, add, add_row, half_applied, ids


def hold(_tx: Transaction, entered: Event, go_on: Event) -> None:
    entered.set()
    assert go_on.wait(10)


async def test_a_full_queue_refuses_at_once_and_takes_again_when_there_is_room(open_store: OpenStore) -> None:
    metrics = Metrics()
    entered, go_on = Event(), Event()
    async with open_store([NOTES], Store(queue_limit=10, pool=1), metrics) as db:
        holding = asyncio.create_task(db.write(hold, entered, go_on))
        assert await asyncio.to_thread(entered.wait, 10)
        waiting = [asyncio.create_task(db.write(add, n)) for n in range(9)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull) as refused:
            await db.write(add, 99)
        assert refused.value.retry_after is not None
        assert "holdfast_store_refused_total 1.0" in metrics.exposition().decode()
        go_on.set()
        await holding
        assert await asyncio.gather(*waiting) == list(range(9))
        assert await db.write(add, 99) == 99


async def test_cancelled_writes_give_their_places_back(open_store: OpenStore) -> None:
    entered, go_on = Event(), Event()
    async with open_store([NOTES], Store(queue_limit=10, pool=1)) as db:
        holding = asyncio.create_task(db.write(hold, entered, go_on))
        assert await asyncio.to_thread(entered.wait, 10)
        waiting = [asyncio.create_task(db.write(add, n)) for n in range(9)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        go_on.set()
        await holding
        await db.write(add, 100)  # it stood behind them: when it is answered, they have left the line
        assert await asyncio.gather(*(db.write(add, n) for n in range(10))) == list(range(10))


async def test_stop_finishes_what_was_taken_and_refuses_what_comes_after(open_store: OpenStore) -> None:
    db = open_store.make()
    await db.start([NOTES])
    taken = [asyncio.create_task(db.write(add, n)) for n in range(300)]
    heavy = [asyncio.create_task(db.write_alone(add, 1000 + n)) for n in range(5)]
    reading = asyncio.create_task(db.read(ids))
    await asyncio.sleep(0)
    stopping = asyncio.create_task(db.stop())
    await asyncio.sleep(0)
    for late in (db.write(add, 5000), db.read(ids), db.glance(ids)):
        with pytest.raises(Stopping):
            await late
    await stopping
    assert await asyncio.gather(*taken) == list(range(300))
    assert await asyncio.gather(*heavy) == list(range(1000, 1005))
    assert isinstance(await reading, list)
    await db.stop()  # twice is once
    async with open_store([NOTES]) as again:
        assert len(await again.read(ids)) == 305
        assert await again.read(half_applied) is None


async def test_turns_go_on_until_nothing_is_left_and_others_come_in_between(open_store: OpenStore) -> None:
    order: list[str] = []

    def turn(_tx: Transaction) -> int:
        order.append("turn")
        return 1 if order.count("small") < 10 else 0

    def small(tx: Transaction, number: int) -> None:
        order.append("small")
        add_row(tx, number)

    async with open_store([NOTES]) as db:

        async def smalls() -> None:
            for n in range(10):
                await db.write(small, n)

        total, _ = await asyncio.gather(db.write_in_turns(turn), smalls())
        assert total == order.count("turn") - 1
        assert order.count("small") == 10
        assert order[-1] == "turn", "it went on as long as there was something to do"
