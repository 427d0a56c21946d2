"""One PostgreSQL connection in the hands of an action or a query, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

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
from holdfast.store.statement import Parameter, Query, Statement
from holdfast.store.transaction import Snapshot, Transaction

R = TypeVar("R")

Connection = psycopg.Connection[tuple[object, ...]]


class ConnectionLost(StoreUnavailable):
    """The connection broke before the COMMIT was sent: nothing happened, and another connection may do it."""


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


def commit_failed(error: BaseException, connection: Connection) -> BaseException:
    """A COMMIT that the server refused did not happen; one whose answer was lost may have."""
    refused = isinstance(error, psycopg.Error) and error.sqlstate is not None and not connection.broken
    if refused:
        return translated(error)
    said = OutcomeUnknown()
    said.__cause__ = error
    return said


class PostgresqlSnapshot(Snapshot):
    backend = "postgresql"

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

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
        return self.connection.execute(statement.postgresql.encode(), parameters)


class PostgresqlTransaction(PostgresqlSnapshot, Transaction):
    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.events: list[object] = []

    def execute(self, statement: Statement, **parameters: Parameter) -> int:
        return max(self._run(statement, parameters).rowcount, 0)

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
            raise
        self.connection.execute("RELEASE SAVEPOINT part")

    def after(self, event: object) -> None:
        self.events.append(event)
