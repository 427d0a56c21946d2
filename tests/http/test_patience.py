"""One timer for all who wait: each is given up in his time, and nobody else is disturbed."""

from __future__ import annotations

import asyncio
import time

import pytest

from holdfast.http.patience import LOOKS, Patience


async def never() -> None:
    await asyncio.get_running_loop().create_future()


async def test_what_comes_in_time_is_given() -> None:
    assert await Patience(5).wait_for(asyncio.sleep(0, "here")) == "here"


async def test_whoever_waits_too_long_is_given_up_and_no_sooner() -> None:
    patience, began = Patience(0.2), time.monotonic()
    with pytest.raises(TimeoutError):
        await patience.wait_for(never())
    assert time.monotonic() - began >= 0.2 * (1 - 1 / LOOKS)


async def test_each_has_a_time_of_its_own() -> None:
    patience = Patience(0.2)

    async def late() -> str:
        with pytest.raises(TimeoutError):
            await patience.wait_for(never())
        return await patience.wait_for(asyncio.sleep(0.1, "here"))

    assert await asyncio.gather(late(), late(), patience.wait_for(asyncio.sleep(0.1, "early"))) == [
        "here",
        "here",
        "early",
    ]


async def test_a_task_that_is_cancelled_meanwhile_is_cancelled() -> None:
    patience = Patience(5)
    task = asyncio.create_task(patience.wait_for(never()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_timer_rests_when_nobody_waits_and_begins_again() -> None:
    patience = Patience(0.05)
    await patience.wait_for(asyncio.sleep(0))
    await asyncio.sleep(0.1)
    assert not patience._is_looking
    with pytest.raises(TimeoutError):
        await patience.wait_for(never())
