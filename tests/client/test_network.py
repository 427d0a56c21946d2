"""The gate in front of the server: nothing goes while we know that nothing arrives."""

from __future__ import annotations

import asyncio
import os

import pytest

from holdfast.client.errors import Busy, Refused, Unanswered
from holdfast.client.network import Network
from holdfast.client.timing import first_of
from tests.client.times import MovedTiming, settled


class Wire:
    """Counts what goes through the gate, and fails as it is told."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.tried = 0
        self.answered = 0
        self.fault: Exception | None = None

    async def ask(self, *, at_once: bool = False) -> None:
        async with self._network.attempt(at_once=at_once):
            self.tried += 1
            await asyncio.sleep(0)
            if self.fault is not None:
                raise self.fault
            self.answered += 1

    async def ask_until_answered(self) -> None:
        while True:
            try:
                await self.ask()
            except (Unanswered, Busy):
                continue
            return


@pytest.fixture
def timing() -> MovedTiming:
    return MovedTiming()


@pytest.fixture
def network(timing: MovedTiming) -> Network:
    return Network(timing)


async def test_while_offline_only_one_of_many_finds_out(network: Network, timing: MovedTiming) -> None:
    wire = Wire(network)
    wire.fault = Unanswered()
    tasks = [asyncio.create_task(wire.ask_until_answered()) for _ in range(50)]
    await timing.pass_by(3600)
    # one at a time, 30 s apart on the average once the ceiling is reached
    assert 60 <= wire.tried <= 240
    wire.fault = None
    await timing.pass_by(61)
    await asyncio.gather(*tasks)
    assert wire.answered == 50


async def test_a_person_who_waits_does_not_wait_for_the_back_off(network: Network) -> None:
    wire = Wire(network)
    wire.fault = Unanswered()
    for _ in range(5):
        with pytest.raises(Unanswered):
            await wire.ask(at_once=True)
    wire.fault = None
    await wire.ask(at_once=True)
    assert network.online


async def test_retry_after_holds_everybody_back(network: Network, timing: MovedTiming) -> None:
    wire = Wire(network)
    await wire.ask()
    wire.fault = Busy(429, "too many", 30.0)
    with pytest.raises(Busy):
        await wire.ask()
    wire.fault = None
    tried = wire.tried
    tasks = [asyncio.create_task(wire.ask()) for _ in range(5)]
    await timing.pass_by(29.9)
    assert wire.tried == tried
    await timing.pass_by(8)
    await asyncio.gather(*tasks)


async def test_what_a_person_asks_in_between_does_not_end_the_wait_that_the_server_asked_for(
    network: Network, timing: MovedTiming
) -> None:
    wire = Wire(network)
    wire.fault = Busy(503, "busy", 30.0)
    with pytest.raises(Busy):
        await wire.ask()
    wire.fault = None
    await wire.ask(at_once=True)
    task = asyncio.create_task(wire.ask())
    await timing.pass_by(29.9)
    assert not task.done()
    await timing.pass_by(10)
    await task


async def test_a_no_is_an_answer(network: Network) -> None:
    wire = Wire(network)
    wire.fault = Refused(404, 40400, "not_found", "no")
    with pytest.raises(Refused):
        await wire.ask()
    assert network.online


async def test_the_network_that_returns_is_tried_at_once(network: Network, timing: MovedTiming) -> None:
    wire = Wire(network)
    wire.fault = Unanswered()
    task = asyncio.create_task(wire.ask_until_answered())
    await timing.pass_by(600)
    wire.fault = None
    network.network_returned()
    await settled()
    assert task.done()
    assert network.online


async def test_who_waits_for_the_network_hears_when_it_is_there(network: Network) -> None:
    waiting = asyncio.create_task(network.when_online())
    await settled()
    assert not waiting.done()
    await Wire(network).ask()
    await asyncio.wait_for(waiting, 5)


async def test_a_probe_that_is_given_up_lets_another_one_go(network: Network) -> None:
    wire = Wire(network)
    hanging = asyncio.Event()

    async def hang() -> None:
        async with network.attempt():
            await hanging.wait()

    probe = asyncio.create_task(hang())
    await settled()
    other = asyncio.create_task(wire.ask())
    await settled()
    assert not other.done()
    probe.cancel()
    await asyncio.wait_for(other, 5)


FULL = bool(os.environ.get("HOLDFAST_FULL_DAY"))
DAY = (24 if FULL else 2) * 3600
LONG_DAY = ((3600, 600), (7200, 3600), (20_000, 120), (40_000, 14_400), (80_000, 30))
OUTAGES = LONG_DAY if FULL else ((900, 600), (3600, 120), (5400, 30))
"""When one begins, and how long it lasts."""


async def test_a_day_of_an_unreliable_network_costs_no_more_requests_than_the_back_off_allows() -> None:
    """24 hours, 500 clients, outages of seconds and of hours. Never a storm when the server comes back."""
    timing = MovedTiming()
    clients = [Wire(Network(timing)) for _ in range(500)]
    edited = [asyncio.Event() for _ in clients]

    async def works(wire: Wire, edit: asyncio.Event) -> None:
        """Something to send every ten minutes, and whenever its user edits."""
        while True:
            await wire.ask_until_answered()
            edit.clear()
            await first_of(edit, timing.sleep(300 + 600 * timing.draw()))

    def tried() -> int:
        return sum(wire.tried for wire in clients)

    tasks = [asyncio.create_task(works(wire, edit)) for wire, edit in zip(clients, edited, strict=True)]
    for begins, lasts in OUTAGES:
        await timing.pass_by(begins - timing.monotonic())
        for wire, edit in zip(clients, edited, strict=True):
            wire.fault = Unanswered()
            edit.set()
        before = tried()
        await timing.pass_by(lasts)
        # ceilings 1, 2, 4 … 60 s: some tries in the first minutes, then one each 30 s on the average
        expected = 500 * lasts / 30
        assert min(expected * 0.85, 500) <= tried() - before <= 500 * 10 + expected * 1.15
        for wire in clients:
            wire.fault = None
        peaks = []
        for _ in range(60):
            before = tried()
            await timing.pass_by(1)
            peaks.append(tried() - before)
        assert all(wire.answered for wire in clients)
        # all are back within the cap, spread over it; after a short outage the delays were shorter
        assert sum(peaks) >= 500
        assert max(peaks) <= (50 if lasts >= 600 else 125)
    await timing.pass_by(DAY - timing.monotonic())
    # ten minutes apart in quiet times: the rest is what the outages allowed
    quiet = 500 * DAY / 600
    assert tried() <= 1.3 * quiet + sum(500 * (10 + 1.15 * lasts / 30) for _, lasts in OUTAGES)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
