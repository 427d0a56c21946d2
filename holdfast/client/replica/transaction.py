"""What an action gets: one transaction on the replica. Knows rows and commits; must not know what is in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

Value = str | int | float | bytes | None
Values = Sequence[Value]


class View:
    """A snapshot to read from."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute

    def rows(self, sql: str, *values: Value) -> list[tuple[Value, ...]]:
        return self._run(sql, values).fetchall()

    def row(self, sql: str, *values: Value) -> tuple[Value, ...] | None:
        found: tuple[Value, ...] | None = self._run(sql, values).fetchone()
        return found

    def value(self, sql: str, *values: Value) -> Value:
        """The first column of the first row, None when there is none."""
        found = self._run(sql, values).fetchone()
        return found[0] if found else None

    def number(self, sql: str, *values: Value) -> int:
        found = self.value(sql, *values)
        return found if isinstance(found, int) else 0


class Transaction(View):
    """Everything in it is kept, or nothing. An action over it may run twice: no side effect but SQL and `changed`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._many = connection.executemany
        self.topics: set[str] = set()

    def execute(self, sql: str, *values: Value) -> int:
        """How many rows it changed."""
        return self._run(sql, values).rowcount

    def many(self, sql: str, values: Iterable[Values]) -> None:
        self._many(sql, values)

    def changed(self, *topics: str) -> None:
        """After the commit, whoever watches one of these looks again."""
        self.topics.update(topics)
