"""`Database` on a SQLite file: wires the writer, the readers and the checkpointer to the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast

import apsw

from holdfast.errors import CannotStart, QueueFull, Stopping, StoreUnavailable
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.settings.fields import MIB
from holdfast.store import migrations as numbered
from holdfast.store.command import Command, Read, Together, Write, answer_all
from holdfast.store.database import Database, StoreReset
from holdfast.store.metrics import StoreMetrics
from holdfast.store.migrations import Migration
from holdfast.store.sqlite.checkpointer import Checkpointer
from holdfast.store.sqlite.connection import BUSY_MS, SqliteTransaction, open_writer
from holdfast.store.sqlite.log_file import LogFile
from holdfast.store.sqlite.readers import Reader, Readers
from holdfast.store.sqlite.writer import Group, Writer
from holdfast.store.transaction import Snapshot, Transaction

T = TypeVar("T")

STOP_SECONDS = 4.0

log = get_logger("store")


class SqliteDatabase(Database):
    backend = "sqlite"

    def __init__(
        self, path: Path, settings: Store, metrics: Metrics | None = None, *, vfs: str | None = None
    ) -> None:
        super().__init__()
        self._path = path
        self._settings = settings
        self._vfs = vfs
        self._metrics = StoreMetrics(metrics or Metrics())
        self._waiting = 0
        self._reading = 0
        self._stopping = False
        self._fatal: str | None = None
        self._started = False

    async def start(self, migrations: Sequence[Migration]) -> None:
        connection = open_writer(self._path, self._vfs)
        try:
            self._migrate(connection, migrations)
            self._open(connection)
        except BaseException:
            connection.close()
            raise

    def _open(self, connection: apsw.Connection) -> None:
        loop = asyncio.get_running_loop()
        settings = self._settings
        self._page_bytes = cast("int", connection.pragma("page_size"))
        checkpointing = Lock()
        self._log_file = LogFile(
            connection,
            self._path,
            checkpointing,
            cut_pages=settings.truncate_mib * MIB // self._page_bytes,
            reader_ms=settings.read_limit_ms,
            busy_ms=BUSY_MS,
        )
        self._writer = Writer(
            connection,
            self._log_file,
            self._delivered,
            group_commands=settings.group_commands,
            group_seconds=settings.group_ms / 1000,
        )
        limit = settings.read_limit_ms / 1000
        self._here = Reader(self._path, self._vfs, limit)
        self._readers = Readers(
            [Reader(self._path, self._vfs, limit) for _ in range(settings.readers)], self._read_done
        )

        def checkpoint_failed(why: str) -> None:
            loop.call_soon_threadsafe(self._failed, why)

        self._checkpointer = Checkpointer(self._path, self._vfs, checkpointing, checkpoint_failed)
        self._loop = loop
        self._connection = connection
        self._checkpoint_pages = settings.checkpoint_mib * MIB // self._page_bytes
        self._writer.start(loop)
        self._readers.start(loop)
        self._checkpointer.start()
        self._started = True

    async def stop(self) -> None:
        if self._stopping or not self._started:
            return
        self._stopping = True
        await self._healing.stop()
        ended, _, _ = await asyncio.gather(
            asyncio.to_thread(self._writer.stop, STOP_SECONDS),
            asyncio.to_thread(self._readers.stop, STOP_SECONDS / 2),
            asyncio.to_thread(self._checkpointer.stop, STOP_SECONDS),
        )
        await asyncio.sleep(0)  # what the threads handed over last is delivered before we close
        self._here.close()
        if ended:
            try:
                self._connection.close()  # the last to close moves the log into the file
            except apsw.Error as error:
                log.error("close_failed", error=str(error))  # the log is still there, and holds everything
        else:
            log.error("writer_still_busy", waiting=self._waiting)

    @property
    def trouble(self) -> str | None:
        return self._fatal or (self._writer.trouble if self._started else "the store is not open")

    # -- work

    async def _write(
        self, run: Callable[[Transaction], T], *, alone: bool, together: Together | None = None
    ) -> T:
        self._refuse()
        if self._waiting >= self._settings.queue_limit:
            self._metrics.refused()
            raise QueueFull
        future: asyncio.Future[T] = self._loop.create_future()
        command = Command(run, future, time.perf_counter(), alone=alone, together=together)
        self._waiting += 1
        self._metrics.waiting(self._waiting)
        self._writer.put(cast("Write", command))
        return await future

    async def _read(self, run: Callable[[Snapshot], T]) -> T:
        self._refuse()
        if self._reading >= self._settings.queue_limit:
            self._metrics.refused()
            raise QueueFull
        future: asyncio.Future[T] = self._loop.create_future()
        command = Command(run, future, time.perf_counter(), alone=False)
        self._reading += 1
        self._readers.put(cast("Read", command))
        return await future

    async def _glance(self, run: Callable[[Snapshot], T]) -> T:
        self._refuse()
        return self._here.answer(run)

    def _refuse(self) -> None:
        if self._stopping:
            raise Stopping
        if self._fatal is not None:
            raise StoreUnavailable(self._fatal)

    # -- answers, on the loop

    def _delivered(self, group: Group) -> None:
        self._waiting -= len(group.commands)
        self._metrics.committed(group.commits, len(group.commands), group.commit_seconds)
        self._metrics.waiting(self._waiting)
        answer_all(group.commands, self.events)
        now = time.perf_counter()
        for command in group.commands:
            self._metrics.answered(now - command.started)
        if group.reset:
            self.events.send([StoreReset()])
        if group.fatal is not None:
            self._failed(group.fatal)
        self._metrics.wal(self._log_file.pages * self._page_bytes)
        if self._log_file.pages > self._checkpoint_pages:
            self._checkpointer.wake()
        if self._writer.trouble is not None and self._fatal is None:
            self._healing.look()

    def _read_done(self, commands: list[Read]) -> None:
        self._reading -= len(commands)
        for command in commands:
            command.answer()

    def _failed(self, why: str) -> None:
        if self._fatal is None:
            self._fatal = why
            log.critical("store_failed", why=why)
            self.on_fatal(why)

    # -- the schema

    def _migrate(self, connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
        def script(text: str) -> None:
            connection.execute(text).fetchall()

        try:
            connection.execute("BEGIN IMMEDIATE")
            tx = SqliteTransaction(connection)
            done = numbered.apply(tx, script, migrations, time.time_ns() // 1_000_000)
            connection.execute("COMMIT")
        except apsw.Error as error:
            raise CannotStart(f"cannot prepare the store {self._path}: {error}") from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        if done:
            log.info("migrated", applied=[str(migration) for migration in done])
