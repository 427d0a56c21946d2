"""What an action or a query holds in its hands: synchronous, the same on both databases.

Nothing here awaits, and an action does no I/O but SQL: the store decides on which thread it runs, and may run
it a second time when the first came to nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from holdfast.errors import ActionFailed
from holdfast.store.statement import Backend, Parameter, Query, Statement, Value

R = TypeVar("R")


class Snapshot(ABC):
    """One consistent view of the store, for reading."""

    backend: Backend

    @abstractmethod
    def row(self, query: Query[R], **parameters: Parameter) -> R | None:
        """The first row, or None."""

    @abstractmethod
    def rows(self, query: Query[R], **parameters: Parameter) -> list[R]:
        """All rows."""

    def one(self, query: Query[R], **parameters: Parameter) -> R:
        """The row that must be there."""
        found = self.row(query, **parameters)
        if found is None:
            raise LookupError(f"no row for: {query.sqlite}")
        return found


class Transaction(Snapshot):
    """One command: all of it is committed, or nothing.

    A row whose key is taken raises `AlreadyThere`, whatever the driver. An action that wants to go on after a
    statement failed puts it in a `savepoint`; one that swallows the error outside of one is undone (PostgreSQL
    knows no other way, so both databases do it).
    """

    spoiled: bool = False
    """A statement failed outside a savepoint."""

    @abstractmethod
    def execute(self, statement: Statement, **parameters: Parameter) -> int:
        """Runs the statement; answers how many rows it touched."""

    @abstractmethod
    def execute_many(self, statement: Statement, rows: Sequence[tuple[Value, ...]]) -> None:
        """Runs the statement for each row, in one go; a row's values come in the order of `statement.names`."""

    def refuse_if_spoiled(self) -> None:
        if self.spoiled:
            raise ActionFailed("an action went on after a statement had failed outside a savepoint")

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """A part that is undone alone when it raises; the exception goes on to the caller."""

    @abstractmethod
    def after(self, event: object) -> None:
        """An event for whoever subscribed to its type; goes out after the commit, best effort."""
