"""Time, as the client is given it: a clock, a way to wait, and a die. A test hands in its own and moves a day on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.client.errors import Unanswered
from holdfast.clock import Clock, SystemClock


class Timing:
    def __init__(
        self,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock or SystemClock()
        self.sleep = sleep
        self.draw = draw

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()


async def first_of(event: asyncio.Event, sleep: Awaitable[None]) -> None:
    """Until the event is set or the sleep is over."""
    told = asyncio.ensure_future(event.wait())
    slept = asyncio.ensure_future(sleep)
    try:
        await asyncio.wait((told, slept), return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        slept.cancel()
        await asyncio.gather(told, slept, return_exceptions=True)


class Wakeup:
    """Something to wait for, with a limit on the handed-in clock. A call that comes early is not lost."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._event = asyncio.Event()

    def call(self) -> None:
        self._event.set()

    @property
    def called(self) -> bool:
        return self._event.is_set()

    async def heard(self) -> None:
        """Until somebody called; the call stands until `forget`."""
        await self._event.wait()

    def forget(self) -> None:
        self._event.clear()

    async def wait(self, seconds: float | None = None) -> bool:
        """True: somebody called; False: the time was up first."""
        if seconds is None:
            await self._event.wait()
        elif not self._event.is_set():
            await first_of(self._event, self._timing.sleep(seconds))
        called = self._event.is_set()
        self._event.clear()
        return called


T = TypeVar("T")


async def within(timing: Timing, seconds: float, awaitable: Awaitable[T]) -> T:
    """What it answers, or `Unanswered` when the handed-in clock says that it took too long."""
    work = asyncio.ensure_future(awaitable)
    limit = asyncio.ensure_future(timing.sleep(seconds))
    try:
        await asyncio.wait((work, limit), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise Unanswered(f"no answer within {seconds:g} s")
        return work.result()
    finally:
        for task in (work, limit):
            task.cancel()
        await asyncio.gather(work, limit, return_exceptions=True)
