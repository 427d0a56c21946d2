"""Writers and followers that run freely against one store until the writers are done; then everyone must be right.

`Outcome.wrong` is the proof's verdict: what any follower, old or fresh, found against the rules.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count

import msgspec

from holdfast.clock import SystemClock
from holdfast.errors import AlreadyThere, StoreUnavailable
from holdfast.feed import Ask, checksum
from holdfast.store import Database
from tests.feed.follower import Follower, Wrong
from tests.feed.world import Delivery, Step, What, deliver, run, started, truth

OWNERS = range(1, 7)
WHAT: list[What] = ["item", "leaf", "edit", "edit", "rename", "kill", "join", "leave"]

Deliver = Callable[[Ask, int], Awaitable[Delivery]]


class Plan(msgspec.Struct, frozen=True):
    seed: int
    writers: int = 5
    readers: int = 2
    writes: int = 60
    """By each writer."""
    pause: float = 0.002
    """The longest that a transaction waits in its middle for others to come in."""
    batches: float = 0.15
    closes: float = 0.02
    joins_without_a_change: float = 0.5


class Outcome(msgspec.Struct):
    wrong: list[str] = []
    refused: int = 0
    """Writes that a constraint or a deadlock stopped: none, when the locks are taken as they must be."""
    written: int = 0
    pages: int = 0


class Race:
    def __init__(self, db: Database, plan: Plan, deliver_page: Deliver | None = None) -> None:
        self.db = db
        self.plan = plan
        self.outcome = Outcome()
        self.rng = random.Random(plan.seed)
        self._clock = SystemClock()
        self._deliver = deliver_page or self._deliver_in_one_snapshot
        self._names = count(1)
        self._spaces: list[int] = []
        self._running = 0
        self._first = plan.seed * 1_000_000

    async def run(self) -> Outcome:
        await self.db.write(started)
        for _ in range(3):
            await self._found()
        followers = [Follower(owner) for owner in OWNERS]
        self._running = self.plan.writers
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.plan.writers):
                tasks.create_task(self._write(random.Random(self.rng.random() + number)))
            for number in range(self.plan.readers):
                mine = followers[number :: self.plan.readers]
                tasks.create_task(self._read(mine, random.Random(self.rng.random() + number)))
        for owner in OWNERS:
            fresh = [Follower(owner), Follower(owner, sends_epoch=False)]
            for follower in (*fresh, followers[owner - 1]):
                await self._settle(follower)
        return self.outcome

    # -- writers

    async def _write(self, rng: random.Random) -> None:
        try:
            for _ in range(self.plan.writes):
                if rng.random() < self.plan.closes:
                    await self._found()
                await self._commit(self._steps(rng), rng)
        finally:
            self._running -= 1

    async def _commit(self, steps: list[Step], rng: random.Random) -> None:
        # the one writer of SQLite lets nobody in, so there a pause would only cost time
        pause = (
            rng.random() * self.plan.pause if self.db.backend == "postgresql" and rng.random() < 0.5 else 0
        )
        try:
            await self.db.write(run, self._clock.now_ms(), steps, pause)
            self.outcome.written += 1
        except (AlreadyThere, StoreUnavailable):
            self.outcome.refused += 1

    async def _found(self) -> None:
        key = self._first + next(self._names)
        steps = [Step(key, "found", self.rng.choice(OWNERS)), Step(key, "join", self.rng.choice(OWNERS))]
        await self._commit(steps, self.rng)
        self._spaces.append(key)

    def _steps(self, rng: random.Random) -> list[Step]:
        spaces = self._spaces[-4:]
        if rng.random() < self.plan.closes:
            return [Step(rng.choice(spaces), "close")]
        if rng.random() < self.plan.batches:
            return [self._step(rng.choice(spaces), rng) for _ in range(rng.randint(2, 8))]
        return [self._step(rng.choice(spaces), rng)]

    def _step(self, space: int, rng: random.Random) -> Step:
        quiet = rng.random() < self.plan.joins_without_a_change
        name = f"t{self._first + next(self._names)}"
        return Step(space, rng.choice(WHAT), rng.choice(OWNERS), rng.randrange(100), name, quiet)

    # -- followers

    async def _deliver_in_one_snapshot(self, ask: Ask, now_ms: int) -> Delivery:
        return await self.db.read(deliver, ask, now_ms)

    async def _read(self, followers: list[Follower], rng: random.Random) -> None:
        while self._running:
            await self._pull(rng.choice(followers), rng.randint(1, 3))

    async def _pull(self, follower: Follower, limit: int) -> bool:
        try:
            delivery = await self._deliver(follower.ask(limit), self._clock.now_ms())
            self.outcome.pages += 1
            return follower.take(delivery, limit)
        except (Wrong, KeyError) as wrong:
            self.outcome.wrong.append(str(wrong))
            return False

    async def _settle(self, follower: Follower) -> None:
        while True:
            delivery = await self.db.read(
                deliver, follower.ask(limit := self.rng.randint(1, 3)), self._clock.now_ms()
            )
            try:
                if not follower.take(delivery, limit):
                    break
            except (Wrong, KeyError) as wrong:
                self.outcome.wrong.append(str(wrong))
                return
        try:
            follower.must_hold(await self.db.read(truth, follower.owner))
            follower.must_add_up_to(await self.db.read(checksum, follower.owner))
        except Wrong as wrong:
            self.outcome.wrong.append(str(wrong))
