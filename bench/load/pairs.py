"""One-to-one messages between pairs, whatever the dialect: a message is done when its sender was told that the
server has it, and its receiver has it.

Answers come in the order of the messages on a line, so counting them is enough to know which they are for.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Sequence

from bench.load.paced import summary
from bench.scenario import Values

GRACE_SECONDS = 120.0
TICK_SECONDS = 0.001
MOST_UNDER_WAY = 32
"""At a pace: no server has to take more than so many of one sender at once; what is due meanwhile waits, and is late."""


class Pair:
    """One who sends and one who receives; `send(first, count)` writes so many messages."""

    def __init__(self, send: Callable[[int, int], None]) -> None:
        self._send = send
        self._sent = self._saved = self._delivered = self._done = 0
        self._began: deque[float] = deque()
        self._due: deque[float] = deque()
        self._window = 0
        self._end = 0.0
        self.took: list[float] = []
        self.done_in_time = 0
        self.quiet = asyncio.Event()
        """Nothing is under way."""
        self.quiet.set()

    def saved(self, count: int = 1) -> None:
        self._saved += count
        self._advance()

    def delivered(self, count: int = 1) -> None:
        self._delivered += count
        self._advance()

    def run(self, window: int, end: float) -> None:
        """From now to `end`, `window` messages are always under way; 0: only what `send_one` sends."""
        self.took, self.done_in_time = [], 0
        self._window, self._end = window, end
        self._advance()

    def send_one(self, due: float) -> None:
        self.quiet.clear()
        self._due.append(due)
        self._send_due()

    def _send_due(self) -> None:
        while self._due and self._sent - self._done < MOST_UNDER_WAY:
            self._began.append(self._due.popleft())
            self._sent += 1
            self._send(self._sent, 1)

    def _advance(self) -> None:
        done, now = min(self._saved, self._delivered), time.perf_counter()
        while self._done < done:
            self.took.append(now - self._began.popleft())
            self.done_in_time += now <= self._end
            self._done += 1
        if self._due:
            self._send_due()
        room = self._window - (self._sent - done)
        if room > 0 and now < self._end:
            self.quiet.clear()
            self._began.extend([now] * room)
            first = self._sent + 1
            self._sent += room
            self._send(first, room)
        elif self._done == self._sent and not self._due:
            self.quiet.set()


async def run(pairs: Sequence[Pair], seconds: float, *, window: int = 0, per_second: float = 0.0) -> Values:
    """As fast as the windows allow, or at a fixed pace; the rate, and how long messages took from when they were due."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for pair in pairs:
            pair.run(window, start + seconds)
        if per_second:
            await _paced(pairs, start, seconds, per_second)
        await asyncio.sleep(max(0.0, start + seconds - time.perf_counter()))
        async with asyncio.timeout(GRACE_SECONDS):  # what was sent must arrive, however late
            for pair in pairs:
                await pair.quiet.wait()
    finally:
        gc.enable()
    took = [one for pair in pairs for one in pair.took]
    said = summary(took, [], len(took), 0)
    done = sum(pair.done_in_time for pair in pairs)
    return {"rate": done / seconds, "done": float(len(took)), "p50": said.p50, "p99": said.p99}


async def _paced(pairs: Sequence[Pair], start: float, seconds: float, per_second: float) -> None:
    count, sent = int(seconds * per_second), 0
    while sent < count:
        due_now = min(count, int((time.perf_counter() - start) * per_second) + 1)
        for number in range(sent, due_now):
            pairs[number % len(pairs)].send_one(start + number / per_second)
        sent = due_now
        await asyncio.sleep(TICK_SECONDS)
