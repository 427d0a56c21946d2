"""Our store in a process of its own, called by as many callers as asked for.

python -m bench.load.store (sqlite FILE | postgresql URL) [--count-syncs]
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import uvloop

from bench.load import rows, task
from bench.load.paced import summary
from bench.load.syncs import COUNTING, CountingVfs
from bench.load.task import Task
from bench.scenario import Values
from holdfast import log
from holdfast.metrics import Metrics
from holdfast.settings import Log, Store
from holdfast.store import Database, Snapshot, Transaction
from holdfast.store.postgresql import PostgresqlDatabase
from holdfast.store.sqlite import SqliteDatabase

_COMMITS = re.compile(rb"^holdfast_store_commits_total (\S+)", re.M)
SPREAD = 7_919  # a prime: readers do not walk along one page


def add(tx: Transaction, number: int) -> None:
    tx.execute(rows.ADD, id=number, owner=number % 97, body=rows.BODY)


def push(tx: Transaction, first: int, many: int) -> None:
    for number in range(first, first + many):
        tx.execute(rows.PUT, id=number, owner=number % 97, body=rows.BODY)


def one(snapshot: Snapshot, number: int) -> tuple[int, str] | None:
    return snapshot.row(rows.ONE, id=number)


def page(snapshot: Snapshot, number: int) -> int:
    return len(snapshot.rows(rows.PAGE, id=number % (rows.FILLED - 100)))


class Measured:
    def __init__(self, db: Database, metrics: Metrics, vfs: CountingVfs | None) -> None:
        self._db = db
        self._metrics = metrics
        self._vfs = vfs
        self._ids = count(rows.FIRST_NEW)

    async def answer(self, asked: Task) -> Values:
        db, spread = self._db, count(1)

        def number() -> int:
            return next(spread) * SPREAD % rows.FILLED

        match asked.kind:
            case "fill":
                for first in range(0, rows.FILLED, 1_000):
                    await db.write_alone(push, first, 1_000)
                return {}
            case "writes":
                return await self._writes(asked)
            case "reads":
                return await closed_loop(lambda: db.read(one, number()), asked)
            case "glances":
                return await closed_loop(lambda: db.glance(one, number()), asked)
            case "pages":
                return await closed_loop(lambda: db.read(page, number()), asked)
            case "paced writes":
                return await self._paced(asked)

    async def _writes(self, asked: Task) -> Values:
        commits, syncs = self._commits(), self._syncs()
        values = dict(await closed_loop(lambda: self._db.write(add, next(self._ids)), asked))
        done = values["done"]
        values["commits"] = (self._commits() - commits) / done
        if self._vfs is not None:
            values["syncs"] = (self._syncs() - syncs) / done
        return values

    async def _paced(self, asked: Task) -> Values:
        took: list[float] = []
        end = time.perf_counter() + asked.seconds

        async def small(due: float) -> None:
            await self._db.write(add, next(self._ids))
            took.append(time.perf_counter() - due)

        async def heavy() -> int:
            pushes = 0
            while time.perf_counter() < end:
                await self._db.write_alone(push, rows.FIRST_PUSHED, rows.PUSHED_ROWS)
                pushes += 1
            return pushes

        async with asyncio.TaskGroup() as group:
            pushing = group.create_task(heavy()) if asked.heavy else None
            start = time.perf_counter()
            sent = int(asked.seconds * asked.per_second)
            for number in range(sent):
                due = start + number / asked.per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(small(due))
        said = summary(took, [], sent, 0)
        pushed = pushing.result() * rows.PUSHED_ROWS / asked.seconds if pushing is not None else 0.0
        return {"p50": said.p50, "p99": said.p99, "most": said.most, "pushed": pushed}

    def _commits(self) -> float:
        found = _COMMITS.search(self._metrics.exposition())
        assert found is not None, "the store counts its commits"
        return float(found[1])

    def _syncs(self) -> int:
        return self._vfs.syncs if self._vfs is not None else 0


async def closed_loop(once: Callable[[], Awaitable[object]], asked: Task) -> Values:
    """Every caller goes on as soon as it was answered."""
    done = 0
    started, used = time.perf_counter(), time.process_time()
    end = started + asked.seconds

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < end:
            for _ in range(4):  # a glance answers without letting anybody else run
                await once()
                done += 1
            await asyncio.sleep(0)

    await asyncio.gather(*(caller() for _ in range(asked.callers)))
    took = time.perf_counter() - started
    return {"rate": done / took, "cpu": (time.process_time() - used) / done * 1e6, "done": float(done)}


def main(backend: str, where: str, *flags: str) -> None:
    metrics = Metrics()
    vfs = CountingVfs() if "--count-syncs" in flags else None
    db: Database
    if backend == "sqlite":
        db = SqliteDatabase(Path(where), Store(), metrics, vfs=COUNTING if vfs else None)
    else:
        db = PostgresqlDatabase(Store(url=where), metrics)
    log.configure(Log(level="warning"))  # to stderr: on stdout we answer
    sys.setswitchinterval(0.001)  # as `holdfast serve` does
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(db.start([rows.MIGRATION]))
        measured = Measured(db, metrics, vfs)
        task.serve(lambda asked: runner.run(measured.answer(asked)))
        runner.run(db.stop())


if __name__ == "__main__":
    main(*sys.argv[1:])
