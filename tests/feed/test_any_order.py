"""Any sequence of writes, pulls, sweeps and clock jumps, one after the other: followers are right at every rest."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.clock import ManualClock
from holdfast.feed import checksum, sweep
from holdfast.feed.sweep import GRACE_MS
from holdfast.feed.verify import problems
from holdfast.store import Database, Snapshot, Transaction
from tests.conftest import OpenStore
from tests.feed.follower import Follower
from tests.feed.world import KEEP_MS, ROOMS, Step, deliver, hashes, run, started, truth

P = ParamSpec("P")
T = TypeVar("T")

EXAMPLES = int(os.environ.get("HOLDFAST_RACES", "1")) * 150
DAY_MS = 24 * 3600 * 1000
OWNERS = range(1, 5)
SPACES = range(1, 4)


class Write(msgspec.Struct, frozen=True):
    steps: list[Step]


class Pull(msgspec.Struct, frozen=True):
    owner: int
    limit: int


class Wait(msgspec.Struct, frozen=True):
    ms: int


class Sweep(msgspec.Struct, frozen=True):
    pass


STEPS = st.builds(
    Step,
    space=st.sampled_from(SPACES),
    what=st.sampled_from(
        ["item", "item", "leaf", "edit", "rename", "kill", "join", "join", "leave", "close", "found"]
    ),
    owner=st.sampled_from(OWNERS),
    pick=st.integers(0, 9),
    quiet=st.booleans(),
)
PROGRAMS = st.lists(
    st.one_of(
        st.builds(Write, st.lists(STEPS, min_size=1, max_size=6)),
        st.builds(Pull, st.sampled_from(OWNERS), st.integers(1, 4)),
        # small steps back and forth, a clock set back by hours, and months in which nobody came
        st.builds(Wait, st.one_of(st.integers(-50, 50), st.integers(-DAY_MS // 2, 0), st.just(50 * DAY_MS))),
        st.builds(Sweep),
    ),
    max_size=40,
)


class Play:
    """One program on a store that other programs used before: keys of its own, time going on."""

    def __init__(self, store: Store, number: int) -> None:
        self.store = store
        self.first = number * 100
        self.names = count(1)
        self.clock = store.clock
        self.followers = {owner: Follower(self.first + owner) for owner in OWNERS}
        for space in SPACES:
            self.write([Step(space, "found", 1), Step(space, "join", 2)])

    def write(self, steps: list[Step]) -> None:
        mine = [
            msgspec.structs.replace(
                step,
                space=self.first + step.space,
                owner=self.first + step.owner,
                name=f"t{self.first}-{next(self.names)}",
            )
            for step in steps
        ]
        self.store.write(run, self.clock.now_ms(), mine)

    def pull(self, follower: Follower, limit: int) -> bool:
        return follower.take(self.store.read(deliver, follower.ask(limit), self.clock.now_ms()), limit)

    def do(self, action: Write | Pull | Wait | Sweep) -> None:
        match action:
            case Write(steps):
                self.write(steps)
            case Pull(owner, limit):
                self.pull(self.followers[owner], limit)
            case Wait(ms):
                self.clock.set_wall(self.clock.now_ms() + ms)
            case Sweep():
                while self.store.write(sweep, self.clock.now_ms(), KEEP_MS):
                    pass

    def all_must_be_right(self) -> None:
        for owner in OWNERS:
            for follower in (self.followers[owner], Follower(self.first + owner)):
                while self.pull(follower, 2 + owner):
                    pass
                assert follower.complaints == []
                assert follower.difference(self.store.read(truth, follower.owner)) is None
                assert follower.checksum() == self.store.read(checksum, follower.owner)
        assert self.store.read(lambda view: list(problems(view, hashes))) == []


class Store:
    """The store's real `write` and `read`, for a program that runs on a thread of its own."""

    def __init__(self, db: Database, loop: asyncio.AbstractEventLoop) -> None:
        self.clock = ManualClock()
        self._db = db
        self._loop = loop

    def write(self, action: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run_coroutine_threadsafe(self._db.write(action, *args, **kwargs), self._loop).result()

    def read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run_coroutine_threadsafe(self._db.read(query, *args, **kwargs), self._loop).result()


async def test_followers_are_right_after_any_sequence(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(started)
        store = Store(db, asyncio.get_running_loop())
        numbers = count(1)

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(PROGRAMS)
        def any_program(program: list[Write | Pull | Wait | Sweep]) -> None:
            # what earlier programs swept lies behind the clock of this one
            store.clock.advance((200 * DAY_MS + GRACE_MS) / 1000)
            play = Play(store, next(numbers))
            for action in program:
                play.do(action)
            play.all_must_be_right()

        await asyncio.to_thread(any_program)
