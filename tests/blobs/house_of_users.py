"""Users of the room, as the races see them: rows that hold references, and what must be true of them."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from holdfast.blobs import reference, release
from holdfast.blobs.check import verify_blobs, verify_references
from holdfast.blobs.place import Place
from holdfast.clock import ManualClock
from holdfast.errors import FileGone, FileMissing
from holdfast.store import Database, Query, Statement, Transaction
from holdfast.store.migrations import Migration
from tests.blobs.conftest import GRACE_SECONDS
from tests.blobs.mortal import Process

HOLDINGS = Migration(
    "users",
    1,
    "holding",
    "CREATE TABLE holding (id TEXT PRIMARY KEY, owner TEXT NOT NULL, sha256 TEXT NOT NULL)",
)
HOLD = Statement("INSERT INTO holding (id, owner, sha256) VALUES (:id, :owner, :sha256)")
LET_GO = Statement("DELETE FROM holding WHERE id = :id")
HELD = Query(tuple[str, str], "SELECT id, sha256 FROM holding WHERE owner = :owner ORDER BY id")
ALL_HELD = Query(str, "SELECT sha256 FROM holding")
LEFT = Query(
    int,
    "SELECT (SELECT count(*) FROM blob) + (SELECT count(*) FROM blob_file) + (SELECT count(*) FROM blob_claim)"
    " + (SELECT count(*) FROM blob_partial) + (SELECT count(*) FROM blob_piece)",
)

CONTENTS = [bytes([65 + n]) * (3_000 + n) for n in range(2)]
BY_KEY = {hashlib.sha256(content).hexdigest(): content for content in CONTENTS}
KEYS = list(BY_KEY)

OPERATIONS = ("use", "use", "keep", "upload", "refer", "resume", "sweep", "collect", "wait", "strays")


class Violation(AssertionError):
    """The room broke its promise."""


def hold(tx: Transaction, holding: str, owner: str, sha256: str, clock: ManualClock, claimed: bool) -> None:
    tx.execute(HOLD, id=holding, owner=owner, sha256=sha256)
    reference(tx, sha256, clock.now_ms(), holder=owner if claimed else None)


def let_go(tx: Transaction, holding: str, sha256: str, clock: ManualClock) -> None:
    if tx.execute(LET_GO, id=holding):
        release(tx, sha256, clock.now_ms())


class World:
    """What outlives every process: the database, the place, the clock."""

    def __init__(self, db: Database, folder: Path, place: Place, start_ms: int) -> None:
        self.db = db
        self.folder = folder
        self.place = place
        self.clock = ManualClock(start_ms)
        self.gave_up = False
        """Time was moved so far that an upload under way may have been given up."""

    async def check_end(self, process: Process) -> None:
        """At rest: every reference has its file; and when all let go, nothing is left."""
        await process.start()
        keys = await self.db.read(lambda view: view.rows(ALL_HELD))
        for key in keys:
            await read_back(process, key)
        problems = await self.db.read(
            lambda view: [
                *verify_references(view, Counter(keys)),
                *verify_blobs(view, self.place, now_ms=self.clock.now_ms(), grace_ms=10**15, deep=True),
            ]
        )
        if [problem for problem in problems if "nobody keeps it" not in problem]:
            raise Violation(f"check says {problems}")
        await self.db.write(lambda tx: tx.execute(Statement("DELETE FROM holding")))
        for key, count in Counter(keys).items():
            for _ in range(count):
                await self.db.write(release, key, self.clock.now_ms())
        self.clock.advance(2 * GRACE_SECONDS)
        await process.collector.sweep()
        strays = await process.collector.remove_strays()
        if strays and not self.gave_up:
            raise Violation(f"{strays} files that no table knew")
        left = await self.db.read(lambda view: view.one(LEFT))
        files = [kept.name for kept in self.place.listing()]
        temporary = list((self.folder / "incoming").iterdir())
        if left or files or temporary:
            raise Violation(f"left behind: {left} rows, files {files}, temporary {temporary}")


async def read_back(process: Process, key: str) -> None:
    try:
        async with await process.files.open(key) as download:
            content = b"".join([piece async for piece in download.stream()])
    except FileGone as error:
        raise Violation("a live reference without its file") from error
    if content != BY_KEY[key]:
        raise Violation("a live reference with other content")


class User:
    """One user with one device, who goes on with whatever process serves them now."""

    def __init__(self, world: World, name: str, choices: random.Random) -> None:
        self.world = world
        self.name = name
        self.choices = choices
        self.operations = 0

    async def do(self, process: Process, operation: str) -> None:
        key = self.choices.choice(KEYS)
        match operation:
            case "use" | "keep":
                claimed_until = await self.upload(process, key)
                await self.refer(process, key, claimed_until)
                if operation == "use":
                    await self.let_all_go(process)
            case "upload":
                await self.upload(process, key)
            case "refer":
                await self.refer(process, key, None)
            case "resume":
                await self.resume(process, key)
            case "sweep":
                await process.collector.sweep()
            case "collect":
                await process.collector.collect()
            case "strays":
                await process.collector.remove_strays()
            case _:
                self.world.gave_up = True
                self.world.clock.advance(GRACE_SECONDS * self.choices.choice([0.3, 0.6, 1.1]))

    async def upload(self, process: Process, key: str) -> int:
        """Answers until when the room must keep it for us."""
        asked = self.world.clock.now_ms()

        async def chunks() -> AsyncIterator[bytes]:
            yield BY_KEY[key][:1000]
            yield BY_KEY[key][1000:]

        await process.files.receive(chunks(), limit=10_000, holder=self.name)
        return asked + round(GRACE_SECONDS * 1000)

    async def resume(self, process: Process, key: str) -> None:
        async def chunks(part: bytes) -> AsyncIterator[bytes]:
            yield part

        content = BY_KEY[key]
        began = await process.resumable.begin(self.name, limit=10_000, length=len(content))
        await process.resumable.append(began.id, 0, chunks(content[:2000]))
        await process.resumable.append(began.id, 2000, chunks(content[2000:]))
        asked = self.world.clock.now_ms()
        await process.resumable.finish(began.id)
        await self.refer(process, key, asked + round(GRACE_SECONDS * 1000))

    async def refer(self, process: Process, key: str, claimed_until: int | None) -> None:
        self.operations += 1
        holding = f"{self.name}.{self.operations}"
        try:
            await process.db.write(hold, holding, self.name, key, self.world.clock, claimed_until is not None)
        except FileMissing as error:
            if claimed_until is not None and self.world.clock.now_ms() < claimed_until:
                raise Violation("claimed, and gone before its time") from error
            return
        await read_back(process, key)

    async def let_all_go(self, process: Process) -> None:
        for holding, key in await process.db.read(lambda view: view.rows(HELD, owner=self.name)):
            await read_back(process, key)
            await process.db.write(let_go, holding, key, self.world.clock)
