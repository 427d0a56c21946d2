"""One connection to the SQLite file: how it is opened, what its handles do, what its errors mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

import apsw
import msgspec

from holdfast.errors import (
    AlreadyThere,
    CannotStart,
    DiskFull,
    HoldfastError,
    OutcomeUnknown,
    ReadTooLong,
    StoreUnavailable,
)
from holdfast.store.statement import Parameter, Query, Statement, Value
from holdfast.store.transaction import Snapshot, Transaction

R = TypeVar("R")

BUSY_MS = 5_000  # another process of ours (a command line) may hold the file for a moment
STEPS_BETWEEN_LOOKS = 20_000  # virtual machine steps, some hundred microseconds

_encode = msgspec.json.encode


def open_writer(path: Path, vfs: str | None) -> apsw.Connection:
    return _open(path, vfs, cache_mib=32)


def open_reader(path: Path, vfs: str | None) -> apsw.Connection:
    connection = _open(path, vfs, cache_mib=16)
    connection.pragma("query_only", True)
    return connection


def _open(path: Path, vfs: str | None, *, cache_mib: int) -> apsw.Connection:
    try:
        connection = apsw.Connection(str(path), vfs=vfs, statementcachesize=400)
    except apsw.Error as error:
        raise CannotStart(f"cannot open the store {path}: {error}") from error
    try:
        connection.set_busy_timeout(BUSY_MS)
        mode = _write_ahead(connection)
        connection.pragma("synchronous", "full")  # an answer means: it is on the disk
        connection.pragma("wal_autocheckpoint", 0)  # `checkpointer` does it, outside the writer's way
        connection.pragma("foreign_keys", True)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -1024 * cache_mib)
    except apsw.Error as error:
        connection.close()
        raise CannotStart(f"cannot open the store {path}: {error}") from error
    if mode != "wal":
        connection.close()
        raise CannotStart(f"cannot open the store {path}: its file system takes no write-ahead log")
    return connection


def _write_ahead(connection: apsw.Connection) -> object:
    """Of several processes that open a new file one changes its mode. SQLite answers the others busy at once, whatever
    the busy timeout says."""
    give_up = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            return connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _extended(error: BaseException) -> int:
    code: int = getattr(error, "extendedresult", 0)
    return code


def is_sync_failure(error: BaseException) -> bool:
    """After a failed fsync nobody knows what the disk holds; only a fresh start from disk is safe."""
    return isinstance(error, apsw.IOError) and _extended(error) in (
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
    )


def translated(error: BaseException) -> BaseException:
    """A driver's error in our words; ours and an action's own mistakes pass unchanged."""
    if isinstance(error, HoldfastError) or not isinstance(error, apsw.Error):
        return error
    said: HoldfastError
    match error:
        case apsw.FullError():
            said = DiskFull()
        case apsw.InterruptError():
            said = ReadTooLong()
        case apsw.ConstraintError() if _extended(error) in (
            apsw.SQLITE_CONSTRAINT_UNIQUE,
            apsw.SQLITE_CONSTRAINT_PRIMARYKEY,
        ):
            said = AlreadyThere()
        case (
            apsw.IOError()
            | apsw.BusyError()
            | apsw.LockedError()
            | apsw.CorruptError()
            | apsw.NotADBError()
            | apsw.CantOpenError()
            | apsw.ReadOnlyError()
            | apsw.NoMemError()
            | apsw.ProtocolError()
            | apsw.ConnectionClosedError()
        ):
            said = StoreUnavailable()
        case _:
            return error  # a statement that is wrong: the action's mistake, answered with 500
    said.__cause__ = error
    return said


def commit_failed(error: BaseException) -> HoldfastError:
    """What the writers of a group hear when its COMMIT failed."""
    said: HoldfastError = DiskFull() if isinstance(error, apsw.FullError) else OutcomeUnknown()
    said.__cause__ = error
    return said


class SqliteSnapshot(Snapshot):
    backend = "sqlite"

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def row(self, query: Query[R], **parameters: Parameter) -> R | None:
        found = self._run(query, parameters).fetchone()
        if found is None or query.make is None:
            return found
        return query.make(found)

    def rows(self, query: Query[R], **parameters: Parameter) -> list[R]:
        found = self._run(query, parameters).fetchall()
        if query.make is None:
            return found  # type: ignore[return-value]  # the row is the tuple as it comes
        make = query.make
        return [make(columns) for columns in found]

    def _run(self, statement: Statement, parameters: dict[str, Parameter]) -> apsw.Cursor:
        for name in statement.lists:
            parameters[name] = _encode(parameters[name]).decode()
        return self.connection.execute(statement.sqlite, parameters)


class SqliteTransaction(SqliteSnapshot, Transaction):
    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.events: list[object] = []

    def execute(self, statement: Statement, **parameters: Parameter) -> int:
        self._run(statement, parameters).fetchall()
        return self.connection.changes()

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Value, ...]]) -> None:
        try:
            self.connection.executemany(statement.sqlite, rows).fetchall()
        except apsw.Error as error:
            self._fail(error)

    def _run(self, statement: Statement, parameters: dict[str, Parameter]) -> apsw.Cursor:
        try:
            return super()._run(statement, parameters)
        except apsw.Error as error:
            self._fail(error)

    def _fail(self, error: apsw.Error) -> NoReturn:
        self.spoiled = True
        said = translated(error)
        if isinstance(said, AlreadyThere):
            raise said from error
        raise error

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        kept = len(self.events)
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            del self.events[kept:]
            if self.connection.in_transaction:  # else everything is gone already, and the writer will see it
                self.connection.execute("ROLLBACK TO part")
                self.connection.execute("RELEASE part")
                self.spoiled = False
            raise
        self.connection.execute("RELEASE part")

    def after(self, event: object) -> None:
        self.events.append(event)


def limited(connection: apsw.Connection, seconds: float) -> Callable[[], None]:
    """Interrupts whatever this connection reads `seconds` after the returned function was called last."""
    deadline = 0.0

    def look() -> bool:
        return time.monotonic() > deadline

    def restart() -> None:
        nonlocal deadline
        deadline = time.monotonic() + seconds

    connection.set_progress_handler(look, STEPS_BETWEEN_LOOKS)
    return restart
