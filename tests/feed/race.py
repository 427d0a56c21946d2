"""Writers and followers that run freely against one store until the writers are done; then everyone must be right.

`Outcome.wrong` is the proof's verdict: what any follower, old or fresh, holds that differs from the truth.
"""

from __future__ import annotations

import asyncio
import random

import msgspec

from holdfast.clock import SystemClock
from holdfast.feed import checksum
from holdfast.store import Database
from tests.feed.authors import OWNERS, Authors, Habits
from tests.feed.follower import Follower
from tests.feed.world import deliver, truth

READERS = 2
MOST_PAGES = 5_000


class Plan(msgspec.Struct, frozen=True):
    seed: int
    habits: Habits = Habits()
    writers: int = 5
    writes: int = 60
    """By each writer."""


class Outcome(msgspec.Struct):
    wrong: list[str] = []
    """Followers that pulled once more after the last commit and hold something else than the truth."""
    complaints: list[str] = []
    """Pages that broke a rule: order, bounds, parents first, a checksum."""
    refused: int = 0
    written: int = 0
    pages: int = 0


async def race(db: Database, plan: Plan) -> Outcome:
    outcome = Outcome()
    rng = random.Random(plan.seed)
    authors = Authors(db, plan.seed, plan.habits)
    await authors.start()
    followers = [Follower(owner) for owner in OWNERS]
    writing = plan.writers

    async def write() -> None:
        nonlocal writing
        try:
            for _ in range(plan.writes):
                await authors.write()
        finally:
            writing -= 1

    async def read(mine: list[Follower]) -> None:
        while writing:
            await pull(db, rng.choice(mine), rng.randint(1, 3))
            outcome.pages += 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(plan.writers):
            tasks.create_task(write())
        for number in range(READERS):
            tasks.create_task(read(followers[number::READERS]))
    outcome.written, outcome.refused = authors.written, authors.refused
    fresh = [Follower(owner, sends_epoch=owner % 2 == 0) for owner in OWNERS]
    for follower in (*followers, *fresh):
        await settle(db, follower, rng)
        await judge(db, follower, outcome)
    return outcome


async def pull(db: Database, follower: Follower, limit: int) -> bool:
    """One page, as it should be read; answers whether there are more."""
    delivery = await db.read(deliver, follower.ask(limit), SystemClock().now_ms())
    return follower.take(delivery, limit)


async def settle(db: Database, follower: Follower, rng: random.Random) -> None:
    """A pull to the end while nobody writes."""
    for _ in range(MOST_PAGES):
        if not await pull(db, follower, rng.randint(1, 3)):
            return
    follower.complaints.append("the last pull does not end")


async def judge(db: Database, follower: Follower, outcome: Outcome) -> None:
    if wrong := follower.difference(await db.read(truth, follower.owner)):
        outcome.wrong.append(wrong)
    said = await db.read(checksum, follower.owner)
    if follower.checksum() != said:
        outcome.complaints.append(f"checksum of {follower.owner}: {said}, computed {follower.checksum()}")
    outcome.complaints.extend(follower.complaints)
    follower.complaints.clear()
