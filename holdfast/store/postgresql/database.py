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
from psycopg_pool import ConnectionPool

from holdfast.errors import CannotStart, OutcomeUnknown, QueueFull, Stopping, StoreUnavailable
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store import migrations as numbered
from holdfast.store.command import Command, answer_all
from holdfast.store.database import Database, StoreReset
from holdfast.store.metrics import StoreMetrics
from holdfast.store.migrations import Migration
from holdfast.store.postgresql.connection import (
    WORTH_ANOTHER_TRY,
    Connection,
    ConnectionLost,
    PostgresqlSnapshot,
    PostgresqlTransaction,
    commit_failed,
    translated,
)
from holdfast.store.transaction import Snapshot, Transaction

T = TypeVar("T")

TRIES = 3
MIGRATION_LOCK = 0x686F6C64  # "hold": the same for every holdfast on this database

log = get_logger("store")


class PostgresqlDatabase(Database):
    backend = "postgresql"

    def __init__(self, settings: Store, metrics: Metrics | None = None) -> None:
        super().__init__()
        self._settings = settings
        self._metrics = StoreMetrics(metrics or Metrics())
        self._waiting = 0
        self._stopping = False
        self._trouble: str | None = None

    async def start(self, migrations: Sequence[Migration]) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._migrate, migrations)
        self._writers = self._pool("writers", "-c default_transaction_isolation=read\\ committed")
        self._readers = self._pool(
            "readers",
            "-c default_transaction_isolation=repeatable\\ read -c default_transaction_read_only=on"
            f" -c statement_timeout={self._settings.read_limit_ms}",
        )
        size = self._settings.pool
        self._write_threads = ThreadPoolExecutor(size, thread_name_prefix="holdfast-write")
        self._read_threads = ThreadPoolExecutor(size, thread_name_prefix="holdfast-read")

    async def stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        for threads in (self._write_threads, self._read_threads):
            await asyncio.to_thread(threads.shutdown)
        await asyncio.sleep(0)  # what the threads handed over last is delivered before we close
        for pool in (self._writers, self._readers):
            await asyncio.to_thread(pool.close, 1.0)

    @property
    def trouble(self) -> str | None:
        return self._trouble

    # -- work

    async def _write(self, run: Callable[[Transaction], T], *, alone: bool) -> T:
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
        commits, seconds = 0, 0.0
        if not command.given_up:
            try:
                for attempt in range(1, TRIES + 1):
                    try:
                        seconds = self._transact(command)
                        commits = 1
                        break
                    except WORTH_ANOTHER_TRY as error:
                        if not isinstance(error, ConnectionLost):
                            self._metrics.retried()
                        log.warning(
                            "transaction_retried", attempt=attempt, error=str(error).partition("\n")[0]
                        )
                        if attempt == TRIES:
                            raise
                        time.sleep(random.uniform(0, 0.02 * attempt))  # noqa: S311 - spreads two rivals, no secret
            except BaseException as error:  # noqa: BLE001 - whatever an action raises is its answer
                command.fail(translated(error))
        self._hand_over(command, commits, seconds)

    def _transact(self, command: Command[Transaction, object]) -> float:
        with self._writers.connection() as connection:
            tx = PostgresqlTransaction(connection)
            command.error = None
            try:
                command.result = command.run(tx)
            except BaseException as error:
                if connection.broken:
                    raise ConnectionLost from error
                connection.rollback()
                raise
            started = time.perf_counter()
            try:
                connection.commit()
            except psycopg.Error as error:
                raise commit_failed(error, connection) from error
            command.events = tx.events
            return time.perf_counter() - started

    def _run_read(self, command: Command[Transaction, object]) -> None:
        if not command.given_up:
            try:
                with self._readers.connection() as connection:
                    try:
                        command.result = cast("Callable[[Snapshot], object]", command.run)(
                            PostgresqlSnapshot(connection)
                        )
                    finally:
                        connection.rollback()
            except BaseException as error:  # noqa: BLE001 - whatever a query raises is its answer
                command.fail(translated(error))
        self._hand_over(command, 0, 0.0)

    def _hand_over(self, command: Command[Transaction, object], commits: int, seconds: float) -> None:
        try:
            self._loop.call_soon_threadsafe(self._delivered, command, commits, seconds)
        except RuntimeError:
            log.warning("answer_without_loop")

    # -- on the loop

    def _delivered(self, command: Command[Transaction, object], commits: int, seconds: float) -> None:
        self._waiting -= 1
        self._metrics.waiting(self._waiting)
        self._metrics.committed(commits, commits, seconds)
        if commits:
            self._trouble = None
            self._metrics.answered(time.perf_counter() - command.started)
        elif isinstance(command.error, StoreUnavailable):
            self._trouble = command.error.message
        answer_all([command], self.events)
        if isinstance(command.error, OutcomeUnknown):
            self.events.send([StoreReset()])

    # -- connections and schema

    def _pool(self, name: str, options: str) -> ConnectionPool[Connection]:
        pool: ConnectionPool[Connection] = ConnectionPool(
            self._settings.url,
            kwargs={
                "options": f"{options} -c synchronous_commit=on -c idle_in_transaction_session_timeout=60000"
                " -c lock_timeout=10000",
                "application_name": f"holdfast {name}",
                "connect_timeout": max(2, round(self._settings.connect_timeout)),
                "prepare_threshold": 2,
            },
            min_size=1,
            max_size=self._settings.pool,
            timeout=self._settings.connect_timeout,
            check=None,
            reconnect_timeout=30,
            name=f"holdfast-{name}",
            open=True,
        )
        return pool

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        try:
            with psycopg.connect(self._settings.url, connect_timeout=10) as connection:
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
            log.info("migrated", applied=[f"{m.room}/{m.number:04d}_{m.name}" for m in done])
