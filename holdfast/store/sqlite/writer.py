"""The writer: one thread, one connection, many commands in one commit.

    take a command → BEGIN IMMEDIATE → each command in its savepoint, as long as more are waiting
                   → COMMIT → answers and events go back to the loop in one call

| what goes wrong | what happens |
|---|---|
| an action raises | its savepoint is undone; it alone gets the error |
| SQLite undoes the whole group (disk full, I/O error, interrupt) | every command runs again, each in a commit of its own |
| COMMIT says the disk is full | nothing was committed; all get 503, the store counts as not writable until a commit succeeds |
| COMMIT fails otherwise | outcome unknown; all get 503 and memory is read again (`StoreReset`) |
| an fsync fails | as before, and the process must start over from disk (`on_fatal`) |

It knows commands and commits, not what is in them.
"""

from __future__ import annotations

import asyncio
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

import apsw

from holdfast.errors import HoldfastError, StoreUnavailable
from holdfast.log import get_logger
from holdfast.store.command import Write
from holdfast.store.sqlite.connection import (
    SqliteTransaction,
    commit_failed,
    is_sync_failure,
    translated,
)

log = get_logger("store")


class Group:
    """What one turn of the writer hands back to the loop."""

    __slots__ = ("commands", "commit_seconds", "commits", "fatal", "reset")

    def __init__(self) -> None:
        self.commands: list[Write] = []
        self.commits = 0
        self.commit_seconds = 0.0
        self.reset = False
        self.fatal: str | None = None


class Deliver(Protocol):
    def __call__(self, group: Group) -> None: ...


class _Undone(Exception):
    """SQLite rolled the whole group back under our feet."""


class Writer:
    def __init__(
        self,
        connection: apsw.Connection,
        deliver: Deliver,
        *,
        group_commands: int,
        group_seconds: float,
        truncate_pages: int,
    ) -> None:
        self._connection = connection
        self._deliver = deliver
        self._group_commands = group_commands
        self._group_seconds = group_seconds
        self._truncate_pages = truncate_pages
        self._queue: SimpleQueue[Write | None] = SimpleQueue()
        self._held: Write | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._serve, name="holdfast-writer", daemon=True)
        self._refuse: str | None = None
        self._truncate_again_at = 0.0
        self.wal_pages = 0
        self.trouble: str | None = None
        connection.set_wal_hook(self._wal_grew)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread.start()

    def put(self, command: Write) -> None:
        self._queue.put(command)

    def stop(self, timeout: float) -> bool:
        """Finishes what was put, then ends the thread; False when it did not get there in time."""
        self._queue.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- the thread

    def _serve(self) -> None:
        while (first := self._take()) is not None:
            group = Group()
            if self._refuse is None:
                self._run_group(first, group)
            else:
                group.commands.append(first)
                first.fail(StoreUnavailable(self._refuse))
            self._send(group)
            if self.wal_pages > self._truncate_pages:
                self._truncate()

    def _take(self) -> Write | None:
        if self._held is not None:
            held, self._held = self._held, None
            return held
        while (command := self._queue.get()) is not None:
            if not command.given_up:
                return command
            self._send_given_up(command)
        return None

    def _take_more(self) -> Write | None:
        """The next command if one waits and may share this commit."""
        try:
            command = self._queue.get_nowait()
        except Empty:
            return None
        if command is None:
            self._queue.put(None)
            return None
        if command.alone:
            self._held = command
            return None
        return command

    def _run_group(self, first: Write, group: Group) -> None:
        deadline = time.monotonic() + self._group_seconds
        command: Write | None = first
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            group.commands.append(first)
            first.fail(translated(error))
            self._note(error)
            return
        while command is not None:
            group.commands.append(command)
            try:
                self._run_in_savepoint(command)
            except _Undone:
                self._run_each_alone(group)
                return
            if first.alone or len(group.commands) >= self._group_commands or time.monotonic() > deadline:
                break
            command = self._take_more()
        self._commit(group, group.commands)

    def _run_in_savepoint(self, command: Write) -> None:
        execute = self._connection.execute
        tx = SqliteTransaction(self._connection)
        command.error = None
        try:
            execute("SAVEPOINT command")
            command.result = command.run(tx)
            execute("RELEASE command")
            command.events = tx.events
        except BaseException as error:  # noqa: BLE001 - whatever an action raises is its answer
            command.fail(translated(error))
            self._note(error)
            self._undo_command(error)

    def _undo_command(self, error: BaseException) -> None:
        if not self._connection.in_transaction:
            raise _Undone from error
        try:
            self._connection.execute("ROLLBACK TO command")
            self._connection.execute("RELEASE command")
        except apsw.Error:
            self._rollback()
            raise _Undone from error

    def _run_each_alone(self, group: Group) -> None:
        """The group fell apart: every command again, in a commit of its own, so that one cannot spoil another."""
        log.warning("group_undone", commands=len(group.commands))
        for command in group.commands:
            if self._refuse is not None:
                command.fail(StoreUnavailable(self._refuse))
                continue
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._run_in_savepoint(command)
            except _Undone:
                continue  # it has its error
            except apsw.Error as error:
                command.fail(translated(error))
                self._note(error)
                continue
            self._commit(group, [command])

    def _commit(self, group: Group, commands: list[Write]) -> None:
        started = time.perf_counter()
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            for command in commands:
                command.fail(commit_failed(error))
            group.reset = True
            self._rollback()
            self._note(error)
            if is_sync_failure(error):
                self._refuse = group.fatal = "the disk could not confirm a write; the server starts over"
            log.error(
                "commit_failed", error=str(error), commands=len(commands), fatal=group.fatal is not None
            )
            return
        group.commit_seconds += time.perf_counter() - started
        group.commits += 1
        if any(command.error is None for command in commands):
            self.trouble = None

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except apsw.Error as error:
                log.warning("rollback_failed", error=str(error))

    def _note(self, error: BaseException) -> None:
        """Remembers why the store cannot be written, for `/readyz`, until a commit succeeds."""
        said = translated(error)
        if isinstance(said, StoreUnavailable) and isinstance(said, HoldfastError):
            self.trouble = said.message

    # -- the write-ahead log

    def _wal_grew(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _truncate(self) -> None:
        """Cuts the log back to nothing, between two groups; a reader in the way costs 50 ms at the most."""
        if time.monotonic() < self._truncate_again_at:
            return
        try:
            self._connection.set_busy_timeout(50)
            in_log, _moved = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self.wal_pages = in_log
        except apsw.BusyError:
            self._truncate_again_at = time.monotonic() + 0.5
        except apsw.Error as error:
            self._note(error)
            log.error("truncate_failed", error=str(error))
            if is_sync_failure(error):
                group = Group()
                self._refuse = group.fatal = "the disk could not confirm a write; the server starts over"
                self._send(group)
        finally:
            self._connection.set_busy_timeout(5_000)

    # -- back to the loop

    def _send_given_up(self, command: Write) -> None:
        group = Group()
        group.commands.append(command)
        self._send(group)

    def _send(self, group: Group) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._deliver, group)
        except RuntimeError:
            log.warning("answers_without_loop", commands=len(group.commands))
