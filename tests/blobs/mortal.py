"""A process that may die between any two steps: every call to the database and to the place is one step.

`Fate` decides what happens at each boundary: nothing, a pause while others go on, or death. Whoever is dead does
nothing any more, not even in a `finally`: each further step and each further effect raises `Killed`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from holdfast.blobs import Collector, Files, ResumableUploads
from holdfast.blobs.incoming import Incoming, TemporaryFile
from holdfast.blobs.metrics import BlobMetrics
from holdfast.blobs.place import Place
from holdfast.clock import ManualClock
from holdfast.metrics import Metrics
from holdfast.settings import Blobs
from holdfast.store import Database, Snapshot, Transaction

P = ParamSpec("P")
T = TypeVar("T")


class Killed(BaseException):
    """SIGKILL: no handler for exceptions sees it."""


class Fate(Protocol):
    dead: bool

    async def step(self) -> None: ...


class MortalDatabase:
    """The database as one process sees it."""

    def __init__(self, db: Database, fate: Fate) -> None:
        self._db = db
        self._fate = fate

    def subscribe(self, kind: type[T], handler: Callable[[T], None]) -> None:
        self._db.subscribe(kind, lambda event: None if self._fate.dead else handler(event))

    async def write(
        self, action: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._between(lambda: self._db.write(action, *args, **kwargs))

    async def write_alone(
        self, action: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._between(lambda: self._db.write_alone(action, *args, **kwargs))

    async def write_in_turns(
        self, turn: Callable[Concatenate[Transaction, P], int], /, *args: P.args, **kwargs: P.kwargs
    ) -> int:
        total = 0
        while done := await self.write_alone(turn, *args, **kwargs):
            total += done
        return total

    async def read(
        self, query: Callable[Concatenate[Snapshot, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._between(lambda: self._db.read(query, *args, **kwargs))

    glance = read

    async def _between(self, call: Callable[[], Awaitable[T]]) -> T:
        await self._fate.step()
        answer = await call()
        await self._fate.step()
        return answer


class MortalFiles(Files):
    fate: Fate

    def on_thread(self, job: Callable[[], T]) -> asyncio.Future[T]:
        async def between() -> T:
            await self.fate.step()
            answer = await super(MortalFiles, self).on_thread(job)
            await self.fate.step()
            return answer

        return asyncio.ensure_future(between())


class MortalFile(TemporaryFile):
    fate: Fate

    def discard(self) -> None:
        if self.fate.dead:
            raise Killed
        super().discard()


class MortalIncoming(Incoming):
    def __init__(self, folder: Path, fate: Fate) -> None:
        super().__init__(folder)
        self._fate = fate
        self._made: list[TemporaryFile] = []

    def create(self, name: str) -> TemporaryFile:
        if self._fate.dead:
            raise Killed
        made = super().create(name)
        file = MortalFile(made.path, made._handle)
        file.fate = self._fate
        self._made.append(file)
        return file

    def close_all(self) -> None:
        """What the system does for the dead: their files are closed, and with that unlocked."""
        for file in self._made:
            if file._handle >= 0:
                os.close(file._handle)
                file._handle = -1


class Process:
    def __init__(
        self, db: Database, folder: Path, place: Place, clock: ManualClock, settings: Blobs, fate: Fate
    ) -> None:
        self.fate = fate
        self.db = MortalDatabase(db, fate)
        self._incoming = MortalIncoming(folder / "incoming", fate)
        seen = cast("Database", self.db)
        metrics = BlobMetrics(Metrics())
        self.files = MortalFiles(seen, place, self._incoming, clock, settings, metrics)
        self.files.fate = fate
        self.resumable = ResumableUploads(seen, self.files, place, clock, settings)
        self.collector = Collector(seen, self.files, place, self._incoming, clock, settings, metrics)

    async def start(self) -> None:
        """As `Collector.start`, without the task in the background."""
        await self.files.on_thread(self._incoming.clean)

    async def bury(self) -> None:
        """After death, or at the end: nothing of it goes on."""
        self.fate.dead = True
        while tasks := self.files._arriving:
            await asyncio.wait(tasks)
            for task in tasks.copy():
                task.cancelled() or task.exception()
                tasks.discard(task)
        await asyncio.to_thread(self.files._threads.shutdown)
        self._incoming.close_all()
