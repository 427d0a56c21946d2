"""Time that a test moves: sleepers wake when their moment has come, and not before."""

from __future__ import annotations

import asyncio
import heapq
import random
from itertools import count

from holdfast.client.timing import Timing
from holdfast.clock import ManualClock


class MovedTiming(Timing):
    def __init__(self, seed: int = 7) -> None:
        self.clock = ManualClock()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        super().__init__(self.clock, self._sleep, random.Random(seed).random)

    async def _sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.clock.monotonic() + seconds, next(self._numbers), woken))
        await woken

    @property
    def next_moment(self) -> float | None:
        """When the next sleeper wakes."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def move_to(self, moment: float) -> None:
        """Time is that moment now; whoever slept until then wakes."""
        self.clock.advance(max(0.0, moment - self.clock.monotonic()))
        while self._sleepers and self._sleepers[0][0] <= self.clock.monotonic():
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)

    async def pass_by(self, seconds: float) -> None:
        """That long, sleeper by sleeper."""
        end = self.clock.monotonic() + seconds
        while True:
            await settled()
            moment = self.next_moment
            if moment is None or moment > end:
                break
            self.move_to(moment)
        self.move_to(end)
        await settled()


async def settled() -> None:
    """Until whoever was woken has had its turn; enough where nothing but the loop is waited for."""
    for _ in range(8):
        await asyncio.sleep(0)
