"""The storm: start, work, kill at a random moment, start again on the same data, verify; until it is enough.

Every kill is drawn from the seed, and so is the delay before it. (What the clients have under way at that moment is
the machine's business: a seed repeats the plan, not the interleaving.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from random import Random
from time import monotonic

import msgspec

from tests.faults.operations import Doors, Figures, Operations
from tests.faults.process import Server
from tests.faults.wire import Cut, Wire
from tests.servers.postgresql import Postgresql

RECOVERY = 20.0  # seconds in which a server must be ready again after its database came back


class Moment(Enum):
    """When the server is killed."""

    START = "while it starts"
    OPENING = "while it opens and migrates the store"
    LOAD = "under load"
    SHUTDOWN = "while it shuts down under load"
    DATABASE = "not the server: PostgreSQL, under load"
    BOTH = "server and PostgreSQL at once, under load"


WITHOUT_POSTGRESQL = (Moment.START, Moment.OPENING, Moment.LOAD, Moment.LOAD, Moment.SHUTDOWN)
WITH_POSTGRESQL = (*WITHOUT_POSTGRESQL, Moment.DATABASE, Moment.DATABASE, Moment.BOTH)


async def ready_by_http(doors: Doors) -> bool:
    async with Wire(doors["http"]) as wire:
        try:
            return (await wire.get("/readyz")).status == 200
        except Cut:
            return False


class Report(msgspec.Struct):
    seed: int
    kills: dict[str, int]
    figures: Figures
    seconds: float

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {moment}" for moment, count in self.kills.items())
        return (
            f"seed {self.seed}: {sum(self.kills.values())} kills ({kills}); {self.figures.acknowledged} acknowledged,"
            f" {self.figures.unknown} unknown, {self.figures.replayed} replayed, lost=0; {self.seconds:.0f} s"
        )


class Storm:
    """`options` are given anew at each start (a room may add its own migrations there)."""

    def __init__(
        self,
        server: Server,
        operations: Sequence[Operations],
        *,
        seed: int,
        postgresql: Postgresql | None = None,
        load_seconds: float = 0.8,
        is_ready: Callable[[Doors], Awaitable[bool]] = ready_by_http,
        moments: Sequence[Moment] | None = None,
    ) -> None:
        self._server = server
        self._operations = operations
        self._seed = seed
        self._random = Random(seed)
        self._postgresql = postgresql
        self._load_seconds = load_seconds
        self._is_ready = is_ready
        self._moments = moments or (WITH_POSTGRESQL if postgresql else WITHOUT_POSTGRESQL)
        self._start_seconds = 1.0
        self._open_seconds = 0.1
        self._kills: dict[str, int] = {}

    async def rage(self, *, kills: int, acknowledged: int) -> Report:
        """At least so many kills and so many acknowledged operations, then a last quiet look at everything."""
        began = monotonic()
        try:
            while sum(self._kills.values()) < kills or self._figures().acknowledged < acknowledged:
                for moment in self._one_round():
                    await self._strike(moment)
            await self._verify(await self._start())
            self._server.terminate()
            code = await self._server.gone()
            assert code == 0, f"the server ended with {code} after SIGTERM:\n{self._server.last_words()}"
        finally:
            self._server.end()
        return Report(self._seed, self._kills, self._figures(), monotonic() - began)

    def _one_round(self) -> list[Moment]:
        """Each moment once, in random order: a small storm has seen them all too."""
        moments = list(self._moments)
        self._random.shuffle(moments)
        return moments

    def _figures(self) -> Figures:
        return sum((operations.figures for operations in self._operations), Figures())

    # -- one kill

    async def _strike(self, moment: Moment) -> None:
        self._kills[moment.value] = self._kills.get(moment.value, 0) + 1
        if moment is Moment.START:
            self._server.spawn()
            await asyncio.sleep(self._random.uniform(0, 1.1 * self._start_seconds))
            self._server.kill()
        elif moment is Moment.OPENING:
            self._server.spawn()
            await self._server.opening()
            await asyncio.sleep(self._random.uniform(0, 1.1 * self._open_seconds))
            self._server.kill()
        else:
            doors = await self._start()
            await self._verify(doors)
            await self._under_load(moment, doors)

    async def _under_load(self, moment: Moment, doors: Doors) -> None:
        async with asyncio.TaskGroup() as clients:
            working = [clients.create_task(operations.work(doors)) for operations in self._operations]
            await asyncio.sleep(self._random.uniform(0.02, self._load_seconds))
            match moment:
                case Moment.SHUTDOWN:
                    self._server.terminate()
                    await asyncio.sleep(self._random.uniform(0, 0.1))
                case Moment.DATABASE:
                    await self._restart_database(self._random.uniform(0, 0.5))
                    await self._recovered(doors)
                    await asyncio.sleep(self._random.uniform(0, self._load_seconds))
                case Moment.BOTH:
                    assert self._postgresql is not None
                    self._postgresql.kill()
            if moment is not Moment.DATABASE:
                self._server.kill()
                await asyncio.sleep(0.01)  # clients meet the closed door
            for task in working:
                task.cancel()
        if moment is Moment.DATABASE:  # the same process goes on: it must be right without a restart
            await self._verify(doors)
            self._server.terminate()
            await self._server.gone()
        elif moment is Moment.BOTH:
            assert self._postgresql is not None
            await asyncio.to_thread(self._postgresql.start)

    async def _restart_database(self, away: float) -> None:
        assert self._postgresql is not None
        self._postgresql.kill()
        await asyncio.sleep(away)
        await asyncio.to_thread(self._postgresql.start)

    async def _recovered(self, doors: Doors) -> None:
        """The server finds its database again by itself."""
        deadline = monotonic() + RECOVERY
        while not await self._is_ready(doors):
            assert self._server.running, (
                f"the server did not outlive PostgreSQL:\n{self._server.last_words()}"
            )
            assert monotonic() < deadline, f"not ready {RECOVERY:g} s after PostgreSQL came back"
            await asyncio.sleep(0.05)

    # -- a quiet start

    async def _start(self) -> Doors:
        spawned = monotonic()
        self._server.spawn()
        await self._server.opening()
        opening = monotonic()
        doors = await self._server.ready()
        self._start_seconds, self._open_seconds = monotonic() - spawned, monotonic() - opening
        return doors

    async def _verify(self, doors: Doors) -> None:
        for operations in self._operations:
            await operations.verify(doors)
