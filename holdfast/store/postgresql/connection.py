"""One PostgreSQL connection in the hands of an action or a query, and what its errors mean."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeVar, cast

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from holdfast.errors import (
    AlreadyThere,
    DiskFull,
    HoldfastError,
    OutcomeUnknown,
    QueueFull,
    ReadTooLong,
    StoreUnavailable,
)
from holdfast.store.statement import Parameter, Query, Statement, Value
from holdfast.store.transaction import Snapshot, Transaction

R = TypeVar("R")

Connection = psycopg.Connection[tuple[object, ...]]


class ConnectionLost(StoreUnavailable):
    """The connection broke before the COMMIT was sent: nothing happened, and another connection may do it."""


_SERVER_ENDED_IT = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.ConnectionException)


def is_lost(error: BaseException, connection: Connection) -> bool:
    """The server may say so before libpq sees the socket close."""
    return connection.broken or isinstance(error, _SERVER_ENDED_IT)


WORTH_ANOTHER_TRY = (pg.DeadlockDetected, pg.SerializationFailure, ConnectionLost)


def translated(error: BaseException) -> BaseException:
    """A driver's error in our words; ours and an action's own mistakes pass unchanged."""
    if isinstance(error, HoldfastError):
        return error
    said: HoldfastError
    match error:
        case pg.UniqueViolation():
            said = AlreadyThere()
        case pg.DiskFull():
            said = DiskFull()
        case pg.QueryCanceled():
            said = ReadTooLong()
        case TooManyRequests():
            said = QueueFull()
        case PoolTimeout() | PoolClosed() | pg.ReadOnlySqlTransaction() | pg.LockNotAvailable():
            said = StoreUnavailable()
        case pg.DeadlockDetected() | pg.SerializationFailure():
            said = StoreUnavailable()
        case psycopg.OperationalError() | psycopg.InterfaceError():
            said = StoreUnavailable()
        case _:
            return error  # a statement that is wrong: the action's mistake, answered with 500
    said.__cause__ = error
    return said


def trouble_in(error: BaseException) -> str | None:
    """What an error says about the store itself: why nothing can be written, if that is so."""
    said = translated(error)
    if not isinstance(said, StoreUnavailable) or isinstance(said, ReadTooLong):
        return None
    match said.__cause__:
        case pg.DeadlockDetected() | pg.SerializationFailure() | pg.LockNotAvailable():
            return None  # the command's own bad luck
        case psycopg.Error():
            return said.message
        case _:
            return said.message if isinstance(said, ConnectionLost) else None


def commit_failed(error: BaseException, connection: Connection) -> BaseException:
    """A COMMIT that the server refused did not happen; one whose answer was lost may have."""
    refused = isinstance(error, psycopg.Error) and error.sqlstate is not None
    if refused and not is_lost(error, connection):
        return translated(error)
    said = OutcomeUnknown()
    said.__cause__ = error
    return said


class PostgresqlSnapshot(Snapshot):
    backend = "postgresql"

    def __init__(self, connection: Connection, deadline: float = float("inf")) -> None:
        self.connection = connection
        self._deadline = deadline

    def row(self, query: Query[R], **parameters: Parameter) -> R | None:
        found = self._run(query, parameters).fetchone()
        if found is None or query.make is None:
            return cast("R | None", found)
        return query.make(found)  # type: ignore[arg-type]

    def rows(self, query: Query[R], **parameters: Parameter) -> list[R]:
        found = self._run(query, parameters).fetchall()
        if query.make is None:
            return cast("list[R]", found)
        make = query.make
        return [make(columns) for columns in found]  # type: ignore[arg-type]

    def _run(
        self, statement: Statement, parameters: dict[str, Parameter]
    ) -> psycopg.Cursor[tuple[object, ...]]:
        # the server limits each statement; here all of them together are
        if time.monotonic() > self._deadline:
            raise ReadTooLong
        return self.connection.execute(statement.postgresql.encode(), parameters)


class PostgresqlTransaction(PostgresqlSnapshot, Transaction):
    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.events: list[object] = []

    def execute(self, statement: Statement, **parameters: Parameter) -> int:
        return max(self._run(statement, parameters).rowcount, 0)

    def execute_many(self, statement: Statement, rows: Sequence[tuple[Value, ...]]) -> None:
        names = statement.names
        try:
            with self.connection.cursor() as cursor:  # (in a pipeline, so that a row costs no round trip)
                cursor.executemany(
                    statement.postgresql.encode(), [dict(zip(names, row, strict=True)) for row in rows]
                )
        except psycopg.Error as error:
            self._fail(error)

    def _run(
        self, statement: Statement, parameters: dict[str, Parameter]
    ) -> psycopg.Cursor[tuple[object, ...]]:
        try:
            return super()._run(statement, parameters)
        except psycopg.Error as error:
            self._fail(error)

    def _fail(self, error: psycopg.Error) -> NoReturn:
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
            if self.connection.info.transaction_status in (
                TransactionStatus.INTRANS,
                TransactionStatus.INERROR,
            ):
                self.connection.execute("ROLLBACK TO SAVEPOINT part")
                self.connection.execute("RELEASE SAVEPOINT part")
                self.spoiled = False
            raise
        self.connection.execute("RELEASE SAVEPOINT part")

    def after(self, event: object) -> None:
        self.events.append(event)
