"""Whoever writes in the proof: random steps over the newest few spaces, committed through the real store."""

from __future__ import annotations

import random
from itertools import count

import msgspec

from holdfast.clock import SystemClock
from holdfast.errors import AlreadyThere, StoreUnavailable
from holdfast.store import Database
from tests.feed.world import Step, What, run, started

OWNERS = range(1, 7)
WHAT: list[What] = ["item", "leaf", "edit", "edit", "rename", "kill", "join", "leave"]


class Habits(msgspec.Struct, frozen=True):
    pause: float = 0.002
    """The longest that a transaction waits in its middle for others to come in."""
    batches: float = 0.15
    closes: float = 0.02
    joins_without_a_change: float = 0.5


class Authors:
    def __init__(self, db: Database, seed: int, habits: Habits) -> None:
        self.written = 0
        self.refused = 0
        """Writes that a constraint or a deadlock stopped: none, when the locks are taken as they must be."""
        self._db = db
        self._rng = random.Random(seed)
        self._habits = habits
        self._clock = SystemClock()
        self._first = seed * 1_000_000
        self._names = count(1)
        self._spaces: list[int] = []

    async def start(self) -> None:
        await self._db.write(started)
        for _ in range(3):
            await self._found()

    async def write(self) -> None:
        if self._rng.random() < self._habits.closes:
            await self._found()
        await self._commit(self._steps())

    async def _found(self) -> None:
        key = self._first + next(self._names)
        owners = self._rng.choices(OWNERS, k=2)
        await self._commit([Step(key, "found", owners[0]), Step(key, "join", owners[1])])
        self._spaces.append(key)

    async def _commit(self, steps: list[Step]) -> None:
        pause = 0.0
        # the one writer of SQLite lets nobody in, so there a pause would only cost time
        if self._db.backend == "postgresql" and self._rng.random() < 0.5:
            pause = self._rng.random() * self._habits.pause
        try:
            await self._db.write(run, self._clock.now_ms(), steps, pause)
            self.written += 1
        except (AlreadyThere, StoreUnavailable):
            self.refused += 1

    def _steps(self) -> list[Step]:
        rng = self._rng
        spaces = self._spaces[-4:]
        if rng.random() < self._habits.closes:
            return [Step(rng.choice(spaces), "close")]
        if rng.random() < self._habits.batches:
            return [self._step(rng.choice(spaces)) for _ in range(rng.randint(2, 8))]
        return [self._step(rng.choice(spaces))]

    def _step(self, space: int) -> Step:
        rng = self._rng
        quiet = rng.random() < self._habits.joins_without_a_change
        name = f"t{self._first + next(self._names)}"
        return Step(space, rng.choice(WHAT), rng.choice(OWNERS), rng.randrange(100), name, quiet)
