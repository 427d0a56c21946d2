"""The store as a whole: for the operator's commands that read, copy or fill all of it, beside a server or without.

Synchronous, one thread, no queue. A `StandingStore` is one that is there, a `NewStore` one that is being made; in
between lie tables and rows as plain values, the same on both databases. Which rows mean what is the rooms' business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from graphlib import CycleError, TopologicalSorter
from typing import Literal, TypeVar

import msgspec

from holdfast.errors import CannotStart
from holdfast.store.migrations import APPLIED, Migration
from holdfast.store.statement import Backend, Query, Value
from holdfast.store.transaction import Snapshot, Transaction

T = TypeVar("T")

Row = Sequence[Value]
Kind = Literal["integer", "text", "bytes", "real", "boolean"]

OWN_TABLE = "schema_migration"  # made by migrating, not copied


class Column(msgspec.Struct, frozen=True):
    name: str
    kind: Kind


class Table(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[Column, ...]
    refers_to: frozenset[str] = frozenset()
    """The tables that its foreign keys name."""

    def quoted_columns(self) -> str:
        return ", ".join(quoted(column.name) for column in self.columns)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def parents_first(tables: Iterable[Table]) -> list[Table]:
    """In an order in which they can be filled one after the other; tables without ties by name."""
    by_name = {table.name: table for table in sorted(tables, key=lambda table: table.name)}
    try:
        order = TopologicalSorter(
            {name: sorted(table.refers_to - {name}) for name, table in by_name.items()}
        ).static_order()
        return [by_name[name] for name in order]
    except CycleError as error:
        raise CannotStart(f"tables refer to each other in a circle: {error.args[1]}") from None


def kind_of(table: str, column: str, declared: str, kinds: Mapping[str, Kind]) -> Kind:
    kind = kinds.get(declared.lower())
    if kind is None:
        raise CannotStart(f"{table}.{column} is a {declared}, which a backup does not know")
    return kind


class Whole(ABC):
    """Everything, in one snapshot, for as long as it takes."""

    view: Snapshot

    @abstractmethod
    def tables(self) -> list[Table]:
        """Parents first."""

    @abstractmethod
    def rows(self, table: Table) -> Iterator[Row]:
        """All rows, streamed."""

    @abstractmethod
    def damage(self, *, deep: bool) -> Iterator[str]:
        """What the database itself says is wrong with its files; `deep` reads all of them."""

    def applied(self) -> dict[str, int]:
        """How far each room is migrated; empty for a store that nobody has migrated."""
        if not self.has_table(OWN_TABLE):
            return {}
        latest: dict[str, int] = {}
        for room, number in self.view.rows(APPLIED):
            latest[room] = max(latest.get(room, 0), number)
        return latest

    @abstractmethod
    def has_table(self, name: str) -> bool: ...


class StandingStore(ABC):
    """A store that is there, in the hands of one command."""

    backend: Backend

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Whole]:
        """Raises `CannotStart` if there is no store."""

    @abstractmethod
    def write(self, action: Callable[[Transaction], T]) -> T:
        """One transaction beside the server's own."""

    @abstractmethod
    def is_served(self) -> bool:
        """A server has it open at this moment."""


class NewStore(ABC):
    """A store that is being filled. Nothing of it is there for others before `finish`."""

    backend: Backend
    tx: Transaction

    @abstractmethod
    def migrate(self, migrations: Sequence[Migration], now_ms: int) -> list[Migration]:
        """Applies what is missing of these; answers what was applied."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Parents first."""

    @abstractmethod
    def empty(self, table: Table) -> None:
        """Takes out what the migrations put in."""

    @abstractmethod
    def load(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> int:
        """Adds rows whose values come in the order of `columns`; answers how many."""

    @abstractmethod
    def finish(self) -> None:
        """Makes it the store, in one step."""

    @abstractmethod
    def give_up(self) -> None:
        """Leaves nothing behind. Harmless after `finish`."""


def as_kinds(table: Table, columns: Sequence[str]) -> list[Kind]:
    """The kinds of these columns here. A backup knows booleans from one database and 0 and 1 from the other."""
    kinds = {column.name: column.kind for column in table.columns}
    if set(kinds) != set(columns):
        raise CannotStart(
            f"the table {table.name} has the columns {sorted(kinds)} here, {sorted(columns)} in the backup"
        )
    return [kinds[name] for name in columns]


def converted(rows: Iterable[Row], kinds: Sequence[Kind]) -> Iterator[Row]:
    """Booleans for the columns that are some here, whatever they were there."""
    flags = [at for at, kind in enumerate(kinds) if kind == "boolean"]
    if not flags:
        yield from rows
        return
    for row in rows:
        values = list(row)
        for at in flags:
            if values[at] is not None:
                values[at] = bool(values[at])
        yield values


COUNT = "SELECT count(*) FROM {}"


def count(view: Snapshot, table: Table) -> int:
    return view.one(Query(int, COUNT.format(quoted(table.name))))
