"""`Database` on PostgreSQL.

Actions are synchronous, so each command runs on a thread of ours with a connection from the pool: writers
READ COMMITTED with their rows locked in the order that each spec fixes, readers in one REPEATABLE READ snapshot.
A deadlock is a defect: it is counted and logged, and the command is run again at most twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import psycopg

from holdfast.errors import ActionFailed, CannotStart, OutcomeUnknown, QueueFull, Stopping
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store import migrations as numbered
from holdfast.store.command import Command, Together, answer_all
from holdfast.store.database import Database, StoreReset
from holdfast.store.metrics import StoreMetrics
from holdfast.store.migrations import Migration
from holdfast.store.postgresql.claims import Claims
from holdfast.store.postgresql.connection import (
    WORTH_ANOTHER_TRY,
    ConnectionLost,
    PostgresqlSnapshot,
    PostgresqlTransaction,
    commit_failed,
    is_lost,
    translated,
    trouble_in,
)
from holdfast.store.postgresql.pool import READING, WRITING, Pool
from holdfast.store.transaction import Snapshot, Transaction

T = TypeVar("T")

TRIES = 3
STOP_SECONDS = 4.0
MIGRATION_LOCK = 0x686F6C64  # "hold": the same for every holdfast on this database

log = get_logger("store")


class _Outcome:
    """What a thread has to say about a command beside its answer."""

    __slots__ = ("commit_seconds", "deadlocks", "tries", "trouble")

    def __init__(self) -> None:
        self.tries = 0
        self.deadlocks = 0
        self.commit_seconds: float | None = None
        self.trouble: str | None = None


class PostgresqlDatabase(Database):
    backend = "postgresql"

    def __init__(self, settings: Store, metrics: Metrics | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._metrics = StoreMetrics(metrics or Metrics())
        self._waiting = 0
        self._stopping = False
        self._too_late = False
        self._claims: Claims | None = None
        self._trouble: str | None = None
        self._started = False

    async def start(self, migrations: Sequence[Migration]) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._migrate, migrations)
        limit = self._settings.read_limit_ms
        self._writers = Pool("writers", self._settings, WRITING)
        self._readers = Pool("readers", self._settings, f"{READING} -c statement_timeout={limit}")
        size = self._settings.pool
        self._write_threads = ThreadPoolExecutor(size, thread_name_prefix="holdfast-write")
        self._read_threads = ThreadPoolExecutor(size, thread_name_prefix="holdfast-read")
        self._started = True

    async def claim(self, name: str) -> bool:
        if self._claims is None:
            self._claims = Claims(self._settings.url, self._settings.connect_timeout, self._claim_lost)
        return await asyncio.to_thread(self._claims.take, name)

    def _claim_lost(self, name: str) -> None:
        why = f"another process on this PostgreSQL has taken over {name}; the server starts over"
        self._loop.call_soon_threadsafe(self.on_fatal, why)

    async def stop(self) -> None:
        if self._stopping or not self._started:
            return
        self._stopping = True
        await self._healing.stop()
        work = asyncio.gather(
            *(asyncio.to_thread(threads.shutdown) for threads in (self._write_threads, self._read_threads))
        )
        done, _ = await asyncio.wait([work], timeout=STOP_SECONDS)
        if not done:
            log.error("still_busy", waiting=self._waiting)
            self._too_late = True
            for pool in (self._writers, self._readers):
                await asyncio.to_thread(pool.interrupt)
            await work
        await asyncio.sleep(0)  # what the threads handed over last is delivered before we close
        for pool in (self._writers, self._readers):
            await asyncio.to_thread(pool.close)
        if self._claims is not None:
            await asyncio.to_thread(self._claims.end)

    @property
    def trouble(self) -> str | None:
        return self._trouble if self._started else "the store is not open"

    # -- work

    async def _write(
        self, run: Callable[[Transaction], T], *, alone: bool, together: Together | None = None
    ) -> T:
        return await self._submit(self._write_threads, self._run_write, run, alone=alone)

    async def _read(self, run: Callable[[Snapshot], T]) -> T:
        return await self._submit(self._read_threads, self._run_read, run, alone=False)

    async def _glance(self, run: Callable[[Snapshot], T]) -> T:
        return await self._read(run)

    async def _submit(
        self,
        threads: ThreadPoolExecutor,
        work: Callable[[Command[Transaction, object]], None],
        run: Callable[..., T],
        *,
        alone: bool,
    ) -> T:
        if self._stopping:
            raise Stopping
        if self._waiting >= self._settings.queue_limit:
            self._metrics.refused()
            raise QueueFull
        future: asyncio.Future[T] = self._loop.create_future()
        command = Command(run, future, time.perf_counter(), alone=alone)
        self._waiting += 1
        self._metrics.waiting(self._waiting)
        threads.submit(work, cast("Command[Transaction, object]", command))
        return await future

    # -- on a thread

    def _run_write(self, command: Command[Transaction, object]) -> None:
        self._run(command, self._writers, self._transact)

    def _run_read(self, command: Command[Transaction, object]) -> None:
        self._run(command, self._readers, self._look)

    def _run(
        self,
        command: Command[Transaction, object],
        pool: Pool,
        once: Callable[[Command[Transaction, object]], float | None],
    ) -> None:
        """`once` answers how long its commit took, if it made one."""
        outcome = _Outcome()
        try:
            while not command.given_up:
                if self._too_late:
                    raise Stopping
                try:
                    outcome.commit_seconds = once(command)
                    break
                except WORTH_ANOTHER_TRY as error:
                    outcome.tries += 1
                    log.warning("transaction_retried", error=str(error).partition("\n")[0])
                    if isinstance(error, ConnectionLost):
                        pool.drop_broken()
                    else:
                        outcome.deadlocks += 1
                    if outcome.tries == TRIES:
                        raise
                    time.sleep(random.uniform(0, 0.02 * outcome.tries))  # noqa: S311 - spreads two rivals
        except BaseException as error:  # noqa: BLE001 - whatever an action or a query raises is its answer
            outcome.trouble = trouble_in(error)
            command.fail(translated(error))
        try:
            self._loop.call_soon_threadsafe(self._delivered, command, outcome)
        except RuntimeError:
            log.warning("answer_without_loop")

    def _transact(self, command: Command[Transaction, object]) -> float:
        with self._writers.connection(command.started) as connection:
            tx = PostgresqlTransaction(connection)
            command.error = None
            try:
                command.result = command.run(tx)
                tx.refuse_if_spoiled()
            except BaseException as error:
                if is_lost(error, connection):
                    raise ConnectionLost from error
                raise  # the pool's context rolls back
            started = time.perf_counter()
            try:
                connection.commit()
            except psycopg.Error as error:
                raise commit_failed(error, connection) from error
            command.events = tx.events
            return time.perf_counter() - started

    def _look(self, command: Command[Transaction, object]) -> None:
        with self._readers.connection(command.started) as connection:
            deadline = time.monotonic() + self._settings.read_limit_ms / 1000
            query = cast("Callable[[Snapshot], object]", command.run)
            try:
                command.result = query(PostgresqlSnapshot(connection, deadline))
                connection.rollback()
            except psycopg.errors.ReadOnlySqlTransaction as error:
                raise ActionFailed("a query tried to write") from error
            except BaseException as error:
                if is_lost(error, connection):
                    raise ConnectionLost from error
                raise

    # -- on the loop

    def _delivered(self, command: Command[Transaction, object], outcome: _Outcome) -> None:
        self._waiting -= 1
        self._metrics.waiting(self._waiting)
        for _ in range(outcome.deadlocks):
            self._metrics.retried()
        if outcome.commit_seconds is not None:
            self._trouble = None
            self._metrics.committed(1, 1, outcome.commit_seconds)
            self._metrics.answered(time.perf_counter() - command.started)
        elif outcome.trouble is not None:
            self._trouble = outcome.trouble
        answer_all([command], self.events)
        if isinstance(command.error, OutcomeUnknown):
            self.events.send([StoreReset()])
        if self._trouble is not None and not self._stopping:
            self._healing.look()

    # -- the schema

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        try:
            with psycopg.connect(self._settings.url, connect_timeout=10) as connection:
                # so that what the lock waited for is seen, whatever this server's default is
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
                if connection.execute("SHOW fsync").fetchone() == ("off",):
                    log.warning(
                        "fsync_off", why="this PostgreSQL loses acknowledged writes when its machine fails"
                    )
                tx = PostgresqlTransaction(connection)

                def script(text: str) -> None:
                    connection.execute(text.encode())

                done = numbered.apply(tx, script, migrations, time.time_ns() // 1_000_000)
        except psycopg.OperationalError as error:
            raise CannotStart(f"cannot reach PostgreSQL: {str(error).strip()}") from error
        if done:
            log.info("migrated", applied=[str(migration) for migration in done])
