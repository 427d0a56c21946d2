"""The PostgreSQL database as a whole: read in one snapshot beside running servers, or filled in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo

from holdfast.errors import CannotStart
from holdfast.store import migrations as numbered
from holdfast.store.migrations import Migration
from holdfast.store.postgresql.connection import (
    Connection,
    PostgresqlSnapshot,
    PostgresqlTransaction,
    translated,
)
from holdfast.store.postgresql.database import MIGRATION_LOCK
from holdfast.store.postgresql.pool import NOTICE_SILENCE, READING, WRITING
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

ROWS_AT_ONCE = 2_000

KINDS: Final[Mapping[str, Kind]] = {
    "int2": "integer",
    "int4": "integer",
    "int8": "integer",
    "text": "text",
    "varchar": "text",
    "bytea": "bytes",
    "float8": "real",
    "bool": "boolean",
}

TABLES = """
    SELECT c.oid::bigint, c.relname::text FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> %s
"""
COLUMNS = """
    SELECT a.attname::text, t.typname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum
"""
REFERS_TO = """
    SELECT r.relname::text FROM pg_constraint k JOIN pg_class r ON r.oid = k.confrelid
    WHERE k.contype = 'f' AND k.conrelid = %s
"""
SERIALS = """
    SELECT a.attname::text, pg_get_serial_sequence(quote_ident(%(table)s), a.attname) FROM pg_attribute a
    WHERE a.attrelid = quote_ident(%(table)s)::regclass AND a.attnum > 0 AND NOT a.attisdropped
        AND pg_get_serial_sequence(quote_ident(%(table)s), a.attname) IS NOT NULL
"""
ANYTHING_HERE = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
SERVERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name IN ('holdfast writers', 'holdfast readers')
"""
INDEXES = """
    SELECT i.indexrelid::regclass::text FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
    WHERE c.relnamespace = current_schema()::regnamespace AND m.amname = 'btree' AND i.indisvalid
"""


def _connected(url: str, options: str, name: str) -> Connection:
    words: dict[str, str | int] = {
        "options": options,
        "application_name": f"holdfast {name}",
        **NOTICE_SILENCE,
    }
    try:
        return psycopg.connect(make_conninfo(url, connect_timeout=10, **words))
    except psycopg.OperationalError as error:
        raise CannotStart(f"cannot reach PostgreSQL: {str(error).strip()}") from error


def _tables(connection: Connection) -> list[Table]:
    tables = connection.execute(TABLES, (OWN_TABLE,)).fetchall()
    return parents_first(_table(connection, oid, str(name)) for oid, name in tables)


def _table(connection: Connection, oid: object, name: str) -> Table:
    columns = tuple(
        Column(str(column), kind_of(name, str(column), str(declared), KINDS))
        for column, declared in connection.execute(COLUMNS, (oid,)).fetchall()
    )
    refers = connection.execute(REFERS_TO, (oid,)).fetchall()
    return Table(name, columns, frozenset(str(other) for (other,) in refers))


class PostgresqlWhole(Whole):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.view = PostgresqlSnapshot(connection)

    def tables(self) -> list[Table]:
        return _tables(self._connection)

    def rows(self, table: Table) -> Iterator[Row]:
        with self._connection.cursor("whole", withhold=False) as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(f"SELECT {table.quoted_columns()} FROM {quoted(table.name)}".encode(), binary=True)
            yield from cursor

    def has_table(self, name: str) -> bool:
        found = self._connection.execute(
            "SELECT to_regclass(quote_ident(%s)) IS NOT NULL", (name,)
        ).fetchone()
        return found == (True,)

    def damage(self, *, deep: bool) -> Iterator[str]:
        """PostgreSQL checks its pages (if they have checksums) as it reads them: deep reads every row, and has the
        `amcheck` extension look at every index when the database has it."""
        if not deep:
            return
        for table in self.tables():
            try:
                with self._connection.transaction():
                    for _row in self.rows(table):
                        pass
            except psycopg.OperationalError:
                raise
            except psycopg.Error as error:
                yield f"{table.name} cannot be read: {str(error).strip()}"
        if not self._has_amcheck():
            return
        for (index,) in self._connection.execute(INDEXES).fetchall():
            try:
                with self._connection.transaction():
                    self._connection.execute("SELECT bt_index_check(%s::regclass)", (index,))
            except psycopg.errors.IndexCorrupted as error:
                yield f"the index {index} is damaged: {str(error).strip()}"

    def _has_amcheck(self) -> bool:
        found = self._connection.execute(
            "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'"
        ).fetchone()
        return found != (0,)


class StandingPostgresql(StandingStore):
    backend = "postgresql"

    def __init__(self, url: str) -> None:
        self._url = url

    def is_served(self) -> bool:
        with _connected(self._url, READING, "look") as connection:
            return connection.execute(SERVERS).fetchone() != (0,)

    @contextmanager
    def snapshot(self) -> Iterator[Whole]:
        with _connected(self._url, READING, "whole") as connection:
            connection.execute("SELECT 1")  # the snapshot is taken now
            yield PostgresqlWhole(connection)

    def write(self, action: Callable[[Transaction], T]) -> T:
        try:
            with _connected(self._url, WRITING, "command") as connection:
                return action(PostgresqlTransaction(connection))
        except psycopg.Error as error:
            raise translated(error) from error


class NewPostgresql(NewStore):
    """One transaction in an empty database: nobody sees a part of it, and a crash leaves nothing."""

    backend = "postgresql"

    def __init__(self, url: str) -> None:
        self._connection = _connected(url, WRITING, "restore")
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        self.tx = PostgresqlTransaction(self._connection)
        if self._connection.execute(ANYTHING_HERE).fetchone() != (0,):
            self._connection.close()
            raise CannotStart("the database is not empty: restore into a new one (CREATE DATABASE …)")

    def migrate(self, migrations: Sequence[Migration], now_ms: int) -> list[Migration]:
        def script(text: str) -> None:
            self._connection.execute(text.encode())

        return numbered.apply(self.tx, script, migrations, now_ms)

    def tables(self) -> list[Table]:
        return _tables(self._connection)

    def empty(self, table: Table) -> None:
        self._connection.execute(f"DELETE FROM {quoted(table.name)}".encode())

    def load(self, table: Table, columns: Sequence[str], rows: Iterable[Row]) -> int:
        kinds = as_kinds(table, columns)
        names = ", ".join(quoted(name) for name in columns)
        loaded = 0
        try:
            into = f"COPY {quoted(table.name)} ({names}) FROM STDIN".encode()
            with self._connection.cursor() as cursor, cursor.copy(into) as copy:
                for row in converted(rows, kinds):
                    copy.write_row(row)
                    loaded += 1
        except psycopg.DataError as error:
            raise CannotStart(f"PostgreSQL does not take a row of {table.name}: {error}") from error
        self._move_serials(table)
        return loaded

    def _move_serials(self, table: Table) -> None:
        """Numbers that the database gives out go on behind the highest one restored."""
        for column, sequence in self._connection.execute(SERIALS, {"table": table.name}).fetchall():
            name = quoted(str(column))
            self._connection.execute(
                f"SELECT setval(%s, max({name})) FROM {quoted(table.name)} HAVING max({name}) IS NOT NULL".encode(),
                (sequence,),
            )

    def finish(self) -> None:
        self._connection.commit()
        self._connection.close()

    def give_up(self) -> None:
        """Closing undoes what was not committed."""
        self._connection.close()
