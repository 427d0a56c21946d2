"""The SQLite file as a whole: read beside a running server, or made anew under another name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import apsw

from holdfast.errors import CannotStart
from holdfast.store import migrations as numbered
from holdfast.store.migrations import Migration
from holdfast.store.sqlite.connection import (
    BUSY_MS,
    SqliteSnapshot,
    SqliteTransaction,
    open_writer,
    translated,
)
from holdfast.store.sqlite.long_read import long_read
from holdfast.store.transaction import Transaction
from holdfast.store.whole import (
    OWN_TABLE,
    Column,
    Kind,
    NewStore,
    Row,
    StandingStore,
    Table,
    Whole,
    as_kinds,
    converted,
    kind_of,
    parents_first,
    quoted,
)

T = TypeVar("T")

KINDS: Final[Mapping[str, Kind]] = {
    "integer": "integer",
    "bigint": "integer",
    "smallint": "integer",
    "text": "text",
    "blob": "bytes",
    "real": "real",
    "double precision": "real",
    "boolean": "boolean",
}


def _tables(connection: apsw.Connection) -> list[Table]:
    names = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> ?",
        (OWN_TABLE,),
    ).fetchall()
    return parents_first(_table(connection, str(name)) for (name,) in names)


def _table(connection: apsw.Connection, name: str) -> Table:
    columns = connection.execute("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0", (name,))
    kinds = tuple(
        Column(str(column), kind_of(name, str(column), str(declared), KINDS)) for column, declared in columns
    )
    refers = connection.execute('SELECT "table" FROM pragma_foreign_key_list(?)', (name,)).fetchall()
    return Table(name, kinds, frozenset(str(other) for (other,) in refers))


class SqliteWhole(Whole):
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.view = SqliteSnapshot(connection)

    def tables(self) -> list[Table]:
        return _tables(self._connection)

    def rows(self, table: Table) -> Iterator[Row]:
        yield from self._connection.execute(f"SELECT {table.quoted_columns()} FROM {quoted(table.name)}")

    def has_table(self, name: str) -> bool:
        found = self._connection.execute(
            "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)
        )
        return found.fetchone() is not None

    def damage(self, *, deep: bool) -> Iterator[str]:
        pragma = "integrity_check" if deep else "quick_check"
        for (said,) in self._connection.execute(f"PRAGMA {pragma}(100)"):
            if said != "ok":
                yield str(said)
        for table, row, parent, _ in self._connection.execute("PRAGMA foreign_key_check"):
            yield f"{table}: row {row} refers to a row of {parent} that is not there"


class StandingSqlite(StandingStore):
    backend = "sqlite"

    def __init__(self, path: Path, is_served: Callable[[], bool]) -> None:
        self._path = path
        self._is_served = is_served

    def is_served(self) -> bool:
        return self._is_served()

    @contextmanager
    def snapshot(self) -> Iterator[Whole]:
        if not self._path.exists():
            raise CannotStart(f"there is no store in {self._path.parent}")
        with long_read(self._path):
            try:
                connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READONLY)
            except apsw.Error as error:
                raise CannotStart(f"cannot open the store {self._path}: {error}") from error
            try:
                connection.set_busy_timeout(BUSY_MS)
                connection.pragma("temp_store", "memory")
                connection.execute("BEGIN")
                connection.execute(
                    "SELECT count(*) FROM sqlite_schema"
                ).fetchall()  # the snapshot is taken now
                yield SqliteWhole(connection)
            except apsw.NotADBError as error:
                raise CannotStart(f"{self._path} is not a database: {error}") from error
            except apsw.Error as error:
                raise translated(error) from error
            finally:
                connection.close()

    def write(self, action: Callable[[Transaction], T]) -> T:
        connection = open_writer(self._path, None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            result = action(SqliteTransaction(connection))
            connection.execute("COMMIT")
        except apsw.Error as error:
            raise translated(error) from error
        finally:
            connection.close()  # undoes what was not committed
        return result


class NewSqlite(NewStore):
    """Written without a journal under a name of its own; a crash leaves a part that nobody takes for the store."""

    backend = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._part.unlink(missing_ok=True)
        self._connection = apsw.Connection(str(self._part))
        for pragma, value in (("journal_mode", "off"), ("synchronous", "off"), ("foreign_keys", "off")):
            self._connection.pragma(pragma, value)
        self._connection.execute("BEGIN EXCLUSIVE")
        self.tx = SqliteTransaction(self._connection)

    def migrate(self, migrations: Sequence[Migration], now_ms: int) -> list[Migration]:
        def script(text: str) -> None:
            self._connection.execute(text).fetchall()

        return numbered.apply(self.tx, script, migrations, now_ms)

    def tables(self) -> list[Table]:
        return _tables(self._connection)

    def empty(self, table: Table) -> None:
        self._connection.execute(f"DELETE FROM {quoted(table.name)}")

    def load(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> int:
        names = ", ".join(quoted(name) for name in columns)
        places = ", ".join("?" * len(columns))
        before = self._connection.total_changes()
        self._connection.executemany(
            f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({places})",
            (tuple(row) for row in converted(rows, as_kinds(table, columns))),
        )
        return self._connection.total_changes() - before

    def finish(self) -> None:
        self._connection.execute("COMMIT")
        self._connection.close()
        _sync(self._part)
        os.replace(self._part, self._path)
        _sync(self._path.parent)

    def give_up(self) -> None:
        """Harmless after `finish`."""
        self._connection.close()
        self._part.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
