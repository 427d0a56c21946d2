"""The readers: a few threads, each with its own connection and one snapshot per query."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

import apsw

from holdfast.errors import ActionFailed, ReadTooLong
from holdfast.store.command import Read
from holdfast.store.sqlite.connection import SqliteSnapshot, limited, open_reader, translated
from holdfast.store.transaction import Snapshot

T = TypeVar("T")


class Reader:
    """One connection that answers queries, each over one snapshot and within the time limit."""

    def __init__(self, path: Path, vfs: str | None, limit_seconds: float) -> None:
        self._connection = open_reader(path, vfs)
        self._restart_clock = limited(self._connection, limit_seconds)

    def answer(self, run: Callable[[Snapshot], T]) -> T:
        self._restart_clock()
        execute = self._connection.execute
        try:
            execute("BEGIN")
            try:
                return run(SqliteSnapshot(self._connection))
            finally:
                if self._connection.in_transaction:
                    execute("COMMIT")
        except apsw.ReadOnlyError as error:
            raise ActionFailed("a query tried to write") from error
        except apsw.Error as error:
            said = translated(error)
            if isinstance(said, ReadTooLong):
                raise said from None
            raise said from error

    def interrupt(self) -> None:
        """From any thread: whatever is being read ends with an error."""
        with suppress(apsw.ConnectionClosedError):  # it ended by itself in this moment
            self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


class Readers:
    def __init__(self, readers: list[Reader], deliver: Callable[[list[Read]], None]) -> None:
        self._readers = readers
        self._deliver = deliver
        self._queue: SimpleQueue[Read | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        for number, reader in enumerate(self._readers, start=1):
            thread = Thread(
                target=self._serve, args=(reader, loop), name=f"holdfast-reader-{number}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def put(self, command: Read) -> None:
        self._queue.put(command)

    def stop(self, timeout: float) -> None:
        for _ in self._threads:
            self._queue.put(None)
        deadline = time.monotonic() + timeout
        for thread, reader in zip(self._threads, self._readers, strict=True):
            thread.join(max(0.0, deadline - time.monotonic()))
            while thread.is_alive() and time.monotonic() < deadline + timeout:
                reader.interrupt()
                thread.join(0.05)

    def _serve(self, reader: Reader, loop: asyncio.AbstractEventLoop) -> None:
        while (command := self._queue.get()) is not None:
            if not command.given_up:
                try:
                    command.result = reader.answer(command.run)
                except BaseException as error:  # noqa: BLE001 - whatever a query raises is its answer
                    command.fail(error)
            try:
                loop.call_soon_threadsafe(self._deliver, [command])
            except RuntimeError:
                break  # the loop is gone, and with it whoever asked
        reader.close()
