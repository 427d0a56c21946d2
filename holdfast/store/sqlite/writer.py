"""The writer: one thread, one connection, many commands in one commit.

    take a command → BEGIN IMMEDIATE → each command in its savepoint, as long as more are waiting
                                       (those that may run together: in one savepoint, one call for all)
                   → COMMIT → answers and events go back to the loop in one call

| what goes wrong | what happens |
|---|---|
| an action raises | its savepoint is undone; it alone gets the error |
| an action for several raises | their savepoint is undone, and each runs in one of its own |
| SQLite undoes the whole group (disk full, I/O error, interrupt) | every command runs again, each in a commit of its own |
| COMMIT finds a deferred constraint broken | nothing was committed; every command runs again, alone |
| COMMIT says the disk is full | nothing was committed; all get 503, the store counts as not writable until a commit succeeds |
| COMMIT fails otherwise | outcome unknown; all get 503 and memory is read again (`StoreReset`) |
| an fsync fails, wherever | as before, and the process must start over from disk (`on_fatal`) |
| another process holds the file for too long | whoever waits gets 503 |
| the writer itself is wrong | outcome unknown for the group; the process must start over |

It knows commands and commits, not what is in them.
"""

from __future__ import annotations

import asyncio
import time
from threading import Thread
from typing import Protocol

import apsw

from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.log import get_logger
from holdfast.store.command import Write
from holdfast.store.sqlite.connection import SqliteTransaction, commit_failed, is_sync_failure, translated
from holdfast.store.sqlite.line import Line
from holdfast.store.sqlite.log_file import LogFile

SYNC_FAILED = "the disk could not confirm a write; the server starts over"

log = get_logger("store")


class Group:
    """What one turn of the writer hands back to the loop."""

    __slots__ = ("commands", "commit_seconds", "commits", "fatal", "reset")

    def __init__(self, *commands: Write) -> None:
        self.commands = list(commands)
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
        log_file: LogFile,
        deliver: Deliver,
        *,
        group_commands: int,
        group_seconds: float,
    ) -> None:
        self._connection = connection
        self._log_file = log_file
        self._deliver = deliver
        self._group_commands = group_commands
        self._group_seconds = group_seconds
        self._line = Line(drop=lambda command: self._send(Group(command)))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._serve, name="holdfast-writer", daemon=True)
        self._refuse: str | None = None
        self.trouble: str | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread.start()

    def put(self, command: Write) -> None:
        self._line.put(command)

    def stop(self, timeout: float) -> bool:
        """Finishes what was put, then ends the thread; False when it did not get there in time."""
        self._line.close()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- the thread

    def _serve(self) -> None:
        while (first := self._line.first()) is not None:
            group = Group(first)
            try:
                self._run_group(first, group)
            except BaseException as error:  # noqa: BLE001 - if this thread ended, all would wait for ever
                self._refuse = group.fatal = f"the writer failed, the server starts over: {error!r}"
                self._rollback()
                group.reset = True
                for command in group.commands:
                    command.fail(OutcomeUnknown())
            self._send(group)
            self._cut_log()

    def _run_group(self, first: Write, group: Group) -> None:
        if self._refuse is not None:
            first.fail(StoreUnavailable(self._refuse))
            return
        deadline = time.monotonic() + self._group_seconds
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            self._note(error, group)
            group.commands.extend(self._line.everything())
            for waiting in group.commands:
                waiting.fail(translated(error))
            return
        command: Write | None = first
        while command is not None:
            together, following = self._all_of_a_kind(command, group)
            try:
                if len(together) > 1:
                    self._run_together(together, group)
                else:
                    self._run_in_savepoint(command, group)
            except _Undone:
                self._run_each_alone(group)
                return
            command = following
            if command is None and not (first.alone or time.monotonic() > deadline):
                command = self._next(group)
        self._commit(group, group.commands)

    def _next(self, group: Group) -> Write | None:
        """One more for this group, if it has room and one waits."""
        if len(group.commands) >= self._group_commands:
            return None
        command = self._line.small()
        if command is not None:
            group.commands.append(command)
        return command

    def _all_of_a_kind(self, first: Write, group: Group) -> tuple[list[Write], Write | None]:
        """`first` and those behind it that can be run together with it; and the one that was taken and cannot."""
        found = [first]
        if first.together is None:
            return found, None
        while (command := self._next(group)) is not None:
            if command.together is None or command.together.action != first.together.action:
                return found, command
            found.append(command)
        return found, None

    def _run_together(self, commands: list[Write], group: Group) -> None:
        tx = SqliteTransaction(self._connection)
        first = commands[0].together
        assert first is not None
        asked = [command.together.asked for command in commands if command.together is not None]
        try:
            self._connection.execute("SAVEPOINT command")
            outcomes = first.with_others(tx, asked)
            tx.refuse_if_spoiled()
            self._connection.execute("RELEASE command")
        except BaseException as error:  # noqa: BLE001 - whose mistake it was shows when each runs on its own
            self._note(error, group)
            self._undo_command(error)
            for command in commands:
                self._run_in_savepoint(command, group)
            return
        for command, outcome in zip(commands, outcomes, strict=True):
            command.error = None
            if isinstance(outcome, BaseException):
                command.fail(translated(outcome))
            else:
                command.result = outcome
        commands[0].events = tx.events

    def _run_in_savepoint(self, command: Write, group: Group) -> None:
        execute = self._connection.execute
        tx = SqliteTransaction(self._connection)
        command.error = None
        try:
            execute("SAVEPOINT command")
            command.result = command.run(tx)
            tx.refuse_if_spoiled()
            execute("RELEASE command")
            command.events = tx.events
        except BaseException as error:  # noqa: BLE001 - whatever an action raises is its answer
            command.fail(translated(error))
            self._note(error, group)
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
        for command in group.commands:
            if self._refuse is not None:
                command.fail(StoreUnavailable(self._refuse))
                continue
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._run_in_savepoint(command, group)
            except _Undone:
                continue  # it has its error
            except apsw.Error as error:
                command.fail(translated(error))
                self._note(error, group)
                continue
            self._commit(group, [command])

    def _commit(self, group: Group, commands: list[Write]) -> None:
        started = time.perf_counter()
        written = self._log_file.commits
        try:
            self._connection.execute("COMMIT")
        except apsw.ConstraintError as error:
            self._rollback()
            if len(commands) > 1:
                self._run_each_alone(group)
            else:
                commands[0].fail(translated(error))
            return
        except apsw.Error as error:
            self._rollback()
            for command in commands:
                command.fail(commit_failed(error))
            group.reset = True
            self._note(error, group)
            log.error("commit_failed", error=str(error), commands=len(commands), fatal=group.fatal)
            return
        group.commit_seconds += time.perf_counter() - started
        group.commits += 1
        if self._log_file.commits > written:  # a commit that writes nothing proves nothing
            self.trouble = None

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except apsw.Error as error:
                log.warning("rollback_failed", error=str(error))

    def _note(self, error: BaseException, group: Group) -> None:
        """What the driver's error says about the store: not writable until a commit succeeds, or lost."""
        if is_sync_failure(error):
            self._refuse = group.fatal = SYNC_FAILED
        said = translated(error)
        if isinstance(error, apsw.Error) and isinstance(said, StoreUnavailable):
            self.trouble = said.message

    def _cut_log(self) -> None:
        try:
            self._log_file.cut_if_long()
        except apsw.Error as error:
            group = Group()
            self._note(error, group)
            log.error("log_not_cut", error=str(error))
            self._send(group)

    # -- back to the loop

    def _send(self, group: Group) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(self._deliver, group)
        except RuntimeError:
            log.warning("answers_without_loop", commands=len(group.commands))
