"""Never a live reference without its file, never a file for nothing: under races and deaths, on both databases.

Three ways to look for a counterexample: hypothesis chooses who makes the next step (and who dies there), one user
dies at each step in turn, and many users race for real, on PostgreSQL in two processes' worth of connections.
`HOLDFAST_RACES` is the number of real races (default 12). The last test breaks the rules one by one and sees that
these tests fail.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.blobs import arrival, collection, collector, files, references
from holdfast.blobs import queries as sql
from holdfast.blobs.disk import DiskPlace
from holdfast.errors import AlreadyThere, FileGone, FileMissing, FilesUnavailable, WrongOffset
from holdfast.settings import Store
from holdfast.store import Database, Statement
from holdfast.store.migrations import of_rooms
from holdfast.store.sqlite import SqliteDatabase
from tests.blobs.conftest import GRACE_SECONDS, SETTINGS
from tests.blobs.house_of_users import HOLDINGS, KEYS, OPERATIONS, User, Violation, World
from tests.blobs.mortal import Fate, Killed, Process
from tests.conftest import OpenStore

RACES = int(os.environ.get("HOLDFAST_RACES", "12"))
# the steps are explored without waiting for a disk
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
MIGRATIONS = [*of_rooms("store", "blobs"), HOLDINGS]


class Immortal:
    dead = False

    async def step(self) -> None:
        if self.dead:
            raise Killed


class DiesAt:
    """Dies at the n-th boundary."""

    def __init__(self, steps: int) -> None:
        self.dead = False
        self.left = steps

    async def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.dead = True
        if self.dead:
            raise Killed


class Hurried:
    """Waits a little at some boundaries, and dies at some."""

    def __init__(self, choices: random.Random, *, mortal: bool) -> None:
        self.dead = False
        self.choices = choices
        self.mortal = mortal

    async def step(self) -> None:
        if self.choices.random() < 0.4:
            await asyncio.sleep(self.choices.random() * 0.004)
        if self.mortal and self.choices.random() < 0.01:
            self.dead = True
        if self.dead:
            raise Killed


class Turns:
    """Lets one actor at a time make one step; `pick` says who, and whether it dies there."""

    def __init__(self, picks: list[int]) -> None:
        self.picks = iter(picks)
        self.parked: dict[str, asyncio.Future[bool]] = {}
        self.running = 0
        self.changed = asyncio.Event()

    async def drive(self) -> None:
        while self.running or self.parked:
            if self.running:
                self.changed.clear()
                await self.changed.wait()
                continue
            pick = next(self.picks, 0)
            name = sorted(self.parked)[pick % len(self.parked)]
            self.running += 1
            self.parked.pop(name).set_result(pick >= 90)


class Stepwise:
    def __init__(self, turns: Turns, name: str) -> None:
        self.dead = False
        self.turns = turns
        self.name = name

    async def step(self) -> None:
        if self.dead:
            raise Killed
        turn = self.turns.parked[self.name] = asyncio.get_running_loop().create_future()
        self.turns.running -= 1
        self.turns.changed.set()
        if await turn:
            self.dead = True
            raise Killed


def process_of(world: World, fate: Fate) -> Process:
    return Process(world.db, world.folder, world.place, world.clock, SETTINGS, fate)


def new_world(db: Database, folder: Path) -> World:
    folder.mkdir(exist_ok=True)
    # files carry the machine's time, so the world begins now
    return World(db, folder, DiskPlace(folder), time.time_ns() // 1_000_000)


async def live(user: User, operations: list[str], fate_of: Callable[[], Fate]) -> None:
    """Does one operation after the other; after a death on a new process, having lost all but the database."""
    process: Process | None = None
    try:
        for operation in operations:
            if process is None or process.fate.dead:
                if process is not None:
                    await process.bury()
                process = process_of(user.world, fate_of())
            try:
                await user.do(process, operation)
            except (Killed, WrongOffset, FilesUnavailable, FileGone):
                continue  # dead; or an upload that time has passed over
    finally:
        if process is not None:
            await process.bury()


# -- the steps, one by one


async def explored(picks: list[int], programs: list[list[str]], seed: int) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name:
        db = SqliteDatabase(Path(name, "holdfast.db"), Store())
        await db.start(MIGRATIONS)
        try:
            world = new_world(db, Path(name, "blobs"))
            turns = Turns(picks)

            found: list[Exception] = []

            async def actor(at: int, program: list[str]) -> None:
                user = User(world, f"user{at}", random.Random(seed + at))
                try:
                    await live(user, program, lambda: Stepwise(turns, user.name))
                except Exception as error:  # noqa: BLE001 - raised below: the others need their turns to come to an end
                    found.append(error)
                finally:
                    turns.running -= 1
                    turns.changed.set()

            turns.running = len(programs)
            await asyncio.gather(turns.drive(), *(actor(at, program) for at, program in enumerate(programs)))
            if found:
                raise found[0]
            last = process_of(world, Immortal())
            await world.check_end(last)
            await last.bury()
        finally:
            await db.stop()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    picks=st.lists(
        st.tuples(st.integers(0, 91), st.sampled_from([1, 1, 3, 20])).map(
            lambda burst: [burst[0]] * burst[1]
        ),
        max_size=40,
    ).map(lambda bursts: [pick for burst in bursts for pick in burst]),
    programs=st.lists(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4), min_size=2, max_size=3),
    seed=st.integers(0, 99),
)
def test_whoever_makes_the_next_step_no_reference_loses_its_file(
    picks: list[int], programs: list[list[str]], seed: int
) -> None:
    asyncio.run(explored(picks, programs, seed))


# -- death at every step


@pytest.mark.parametrize("operation", ["use", "upload", "resume", "sweep"])
async def test_a_death_at_any_step_leaves_nothing_that_a_sweep_does_not_find(
    open_store: OpenStore, tmp_path: Path, operation: str
) -> None:
    async with open_store(MIGRATIONS) as db:
        world = new_world(db, tmp_path / "blobs")
        for steps in range(1000):
            fate = DiesAt(steps)
            first = process_of(world, Immortal())
            user = User(world, "user", random.Random(1))
            if operation == "sweep":
                await user.do(first, "resume")
                await user.upload(first, KEYS[0])
                world.clock.advance(GRACE_SECONDS * 2)
                await user.let_all_go(first)
            mortal = process_of(world, fate)
            with suppress(Killed):
                await user.do(mortal, operation)
            await mortal.bury()
            await world.check_end(first)
            await first.bury()
            if not fate.left < 0:
                break
        assert 5 < steps < 999


# -- for real


@asynccontextmanager
async def two_databases(open_store: OpenStore) -> AsyncIterator[list[Database]]:
    async with AsyncExitStack() as stack:
        count = 2 if open_store.backend == "postgresql" else 1
        yield [await stack.enter_async_context(open_store(MIGRATIONS)) for _ in range(count)]


async def race(
    databases: list[Database], folder: Path, seed: int, users: int = 5, operations: int = 8
) -> None:
    choices = random.Random(seed)
    worlds = [new_world(db, folder) for db in databases]
    for world in worlds:
        world.clock = worlds[0].clock
    calm = seed % 2 == 0  # no jumps of time: then no upload is ever given up, and there are no strays at all
    names = [o for o in OPERATIONS if not (calm and o == "wait")]

    async def one(at: int) -> None:
        user = User(worlds[at % len(worlds)], f"user{at}", random.Random(choices.random()))
        program = [user.choices.choice(names) for _ in range(operations)]
        await live(user, program, lambda: Hurried(user.choices, mortal=at % 2 == 0))

    async with asyncio.TaskGroup() as group:
        for at in range(users):
            group.create_task(one(at))
    worlds[0].gave_up = not calm
    last = process_of(worlds[0], Immortal())
    await worlds[0].check_end(last)
    await last.bury()


async def test_users_who_race_and_die_never_find_a_reference_without_its_file(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with two_databases(open_store) as databases:
        for seed in range(RACES):
            await race(databases, tmp_path / "blobs", seed)


# -- the rules, broken


def names_are_used_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(files, "blob_name", lambda sha256, _once: f"files/{sha256[:2]}/{sha256}.same")


def condemned_without_looking_again(patch: pytest.MonkeyPatch) -> None:
    def condemn(tx, sha256s, now_ms):  # type: ignore[no-untyped-def]
        names = []
        for sha256 in sorted(sha256s):
            blob = tx.row(sql.LOCK_IF_FREE, sha256=sha256)
            if blob is not None:
                tx.execute(sql.DELETE, sha256=sha256)
                tx.execute(sql.CONDEMN_NAME, name=blob.name, now=now_ms)
                names.append(blob.name)
        return names

    patch.setattr(collection, "condemn", condemn)


def removed_before_it_is_condemned(patch: pytest.MonkeyPatch) -> None:
    honest = collector.Collector._condemn

    async def condemn(self, sha256s):  # type: ignore[no-untyped-def]
        for sha256 in sha256s:
            blob = await self._db.read(references.find, sha256)
            if blob is not None and blob.refs == 0:
                await self._files.on_thread(lambda name=blob.name: self._place.remove([name]))
        return await honest(self, sha256s)

    patch.setattr(collector.Collector, "_condemn", condemn)


def settled_before_it_is_in_place(patch: pytest.MonkeyPatch) -> None:
    async def arrive(self, file, digest, holder):  # type: ignore[no-untyped-def]
        now = self._clock.now_ms()
        claim = arrival.Claim(holder, now + self._grace_ms)
        name = files.blob_name(digest.sha256, self._once())
        there = await self._db.write(arrival.announce, digest, name, claim, now)
        if there is None:
            there = (await self._db.write(arrival.settle, digest, name, claim, now)).blob
            await self.on_thread(lambda: self._place.keep(file.path, there.name))
        return there

    patch.setattr(files.Files, "_arrive", arrive)


def forgotten_before_it_is_removed(patch: pytest.MonkeyPatch) -> None:
    async def remove(self, names):  # type: ignore[no-untyped-def]
        gone = sorted(names)
        if gone:
            await self._db.write(collection.forget, gone)
            await self._files.on_thread(lambda: self._place.remove(gone))
        return len(gone)

    patch.setattr(collector.Collector, "_remove", remove)


def in_place_before_it_is_announced(patch: pytest.MonkeyPatch) -> None:
    async def arrive(self, file, digest, holder):  # type: ignore[no-untyped-def]
        now = self._clock.now_ms()
        claim = arrival.Claim(holder, now + self._grace_ms)
        name = files.blob_name(digest.sha256, self._once())
        await self.on_thread(lambda: self._place.keep(file.path, name))
        there = await self._db.write(arrival.announce, digest, name, claim, now)
        return there or (await self._db.write(arrival.settle, digest, name, claim, now)).blob

    patch.setattr(files.Files, "_arrive", arrive)


def settled_although_it_was_given_up(patch: pytest.MonkeyPatch) -> None:
    honest = arrival.settle
    revive = Statement(
        "INSERT INTO blob_file (name, state, since_ms) VALUES (:name, 'arriving', 0)"
        " ON CONFLICT (name) DO UPDATE SET state = 'arriving'"
    )

    def settle(tx, digest, name, claim, now_ms):  # type: ignore[no-untyped-def]
        tx.execute(revive, name=name)
        return honest(tx, digest, name, claim, now_ms)

    patch.setattr(arrival, "settle", settle)


def announced_without_a_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        sql,
        "CLAIM",
        Statement("UPDATE blob_claim SET until_ms = :until WHERE sha256 = :sha256 AND holder = :holder"),
    )


BROKEN = [
    names_are_used_again,
    condemned_without_looking_again,
    removed_before_it_is_condemned,
    settled_before_it_is_in_place,
    forgotten_before_it_is_removed,
    in_place_before_it_is_announced,
    settled_although_it_was_given_up,
    announced_without_a_claim,
]


def in_bursts(choices: random.Random) -> list[int]:
    """Often one actor goes far while the others stand still: that is where the slow ones are overtaken."""
    picks: list[int] = []
    while len(picks) < 150:
        pick = choices.randrange(94)
        picks += [pick] * (choices.choice([1, 1, 3, 20]) if pick < 90 else 1)
    return picks


def searched(runs: int) -> int:
    """How many runs it took until somebody noticed; 0 when nobody did."""
    choices = random.Random(7)
    for run in range(1, runs + 1):
        picks = in_bursts(choices)
        operations = choices.choice([OPERATIONS, ("use", "wait", "sweep"), ("use", "collect")])
        programs = [choices.choices(operations, k=4) for _ in range(3)]
        try:
            asyncio.run(explored(picks, programs, choices.randrange(100)))
        except (Violation, AlreadyThere, FileMissing, ValueError):
            return run
    return 0


@pytest.mark.parametrize("broken", BROKEN, ids=lambda rule: rule.__name__)
def test_the_proof_fails_when_the_rule_is_broken(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert searched(600), "nobody noticed"


def test_the_same_search_finds_nothing_while_the_rules_are_kept() -> None:
    assert searched(100) == 0
