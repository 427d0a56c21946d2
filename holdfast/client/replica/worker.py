"""The two threads of a replica: one writes, in groups that share a commit; one reads, beside it.

A write returns when it is committed. `durable` commits are on the disk (FULL); what can be pulled again is committed
without waiting for the disk, in order behind them (WAL): a crash of the machine may take it back, never half of it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from holdfast.client.errors import ReplicaClosed
from holdfast.client.replica.transaction import Transaction

T = TypeVar("T")

GROUP = 64
BUSY_MS = 20_000  # another process writes to the same replica: its commits are short
LOOK_EVERY = 0.5  # seconds between two looks for what another process wrote

ELSEWHERE = "elsewhere"
"""The topic of changes that another process made: whatever is watched may have changed."""

Told = Callable[[frozenset[str]], None]


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000, cached_statements=256
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -16000")
    connection.execute("PRAGMA journal_size_limit = 16777216")
    return connection


def data_version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


class Job(Generic[T]):
    """One call, and who waits for it."""

    __slots__ = ("_future", "_loop", "durable", "error", "result", "run")

    def __init__(self, run: Callable[[Transaction], T], *, durable: bool) -> None:
        self.run = run
        self.durable = durable
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None

    def finish(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop has ended; nobody waits any more
            return

    def _settle(self) -> None:
        if self._future.done():
            return  # whoever waited was cancelled; the commit stands
        if self.error is not None:
            self._future.set_exception(self.error)
        else:
            self._future.set_result(self.result)  # type: ignore[arg-type]

    async def done(self) -> T:
        return await self._future


AnyJob = Job[object]


class Worker:
    """A thread with a connection and a queue."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._queue: SimpleQueue[Job[object] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def ask(self, job: Job[T]) -> T:
        if self._closed:
            raise ReplicaClosed(ReplicaClosed.__doc__)
        self._queue.put(job)  # type: ignore[arg-type]
        return await job.done()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def close(self) -> None:
        """What was asked for before is done first."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()
            self._connection.close()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            self._serve(job)

    def _serve(self, job: AnyJob) -> None:
        raise NotImplementedError


class Reader(Worker):
    def _serve(self, job: AnyJob) -> None:
        try:
            self._connection.execute("BEGIN")
            try:
                job.result = job.run(Transaction(self._connection))
            finally:
                self._connection.execute("ROLLBACK")
        except Exception as error:  # noqa: BLE001 - handed to whoever asked
            job.error = error
        job.finish()


class Writer(Worker):
    def __init__(self, connection: sqlite3.Connection, name: str, told: Told) -> None:
        self._told = told
        self._synchronous = ""
        self._seen = data_version(connection)
        super().__init__(connection, name)

    def _work(self) -> None:
        ended = False
        while not ended:
            try:
                first = self._queue.get(timeout=LOOK_EVERY)
            except Empty:
                self._look_elsewhere()
                continue
            if first is None:
                return
            group = [first]
            while len(group) < GROUP:
                try:
                    more = self._queue.get_nowait()
                except Empty:
                    break
                if more is None:
                    ended = True
                    break
                group.append(more)
            self._commit(group)

    def _commit(self, group: list[AnyJob]) -> None:
        topics: set[str] = set()
        try:
            self._begin("FULL" if any(job.durable for job in group) else "NORMAL")
            for job in group:
                topics |= self._run(job, alone=len(group) == 1)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            if len(group) > 1:
                for job in group:
                    job.result = job.error = None
                    self._commit([job])
                return
            group[0].error = error
            topics.clear()
        for job in group:
            job.finish()
        if topics:
            self._told(frozenset(topics))

    def _begin(self, synchronous: str) -> None:
        if synchronous != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        self._connection.execute("BEGIN IMMEDIATE")

    def _run(self, job: AnyJob, *, alone: bool) -> set[str]:
        """One job; what it did is undone when it fails, and only that."""
        run = self._connection.execute
        tx = Transaction(self._connection)
        run("SAVEPOINT job")
        try:
            job.result = job.run(tx)
        except sqlite3.Error as error:
            if not self._connection.in_transaction or not alone:
                raise  # a full disk takes the whole transaction with it: then each is tried by itself
            job.error = error
        except Exception as error:  # noqa: BLE001 - handed to whoever asked
            job.error = error
        if job.error is not None:
            run("ROLLBACK TO job")
            tx.topics.clear()
        run("RELEASE job")
        return tx.topics

    def _look_elsewhere(self) -> None:
        """SQLite tells a connection whether any other one has committed; in this process only this one does."""
        version = data_version(self._connection)
        if version != self._seen:
            self._seen = version
            self._told(frozenset((ELSEWHERE,)))

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
