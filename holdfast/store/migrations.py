"""Numbered migrations. Each room keeps its own files, `migrations/0001_what.sql`, and its own count.

They are applied at start-up under a lock, each once, in the order in which `app` names the rooms; twice, or from
two processes at once, is harmless. A store that knows a number which this build does not is from a newer
version, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files

import msgspec

from holdfast.errors import CannotStart
from holdfast.store.statement import Backend, Query, Statement, lines_for
from holdfast.store.transaction import Transaction

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql\Z")

CREATE_TABLE = Statement(
    "CREATE TABLE IF NOT EXISTS schema_migration (room TEXT NOT NULL, number INTEGER NOT NULL,"
    " name TEXT NOT NULL, applied_ms BIGINT NOT NULL, PRIMARY KEY (room, number))"
)
APPLIED = Query(tuple[str, int], "SELECT room, number FROM schema_migration")
RECORD = Statement(
    "INSERT INTO schema_migration (room, number, name, applied_ms) VALUES (:room, :number, :name, :now)"
)

FORGET = Statement("DELETE FROM schema_migration WHERE number = 0")


class Migration(msgspec.Struct, frozen=True):
    room: str
    number: int
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.room}/{self.number:04d}_{self.name}"

    def sql(self, backend: Backend) -> str:
        text = lines_for(backend, self.text)
        if backend == "sqlite":
            # only this spelling makes the key the row's own number, without a second index
            text = text.replace("BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY").replace("BYTEA", "BLOB")
        return text


def touch(tx: Transaction) -> None:
    """Writes, and leaves no trace: proof that the store can be written.

    (An UPDATE to the same value would prove nothing: SQLite sees that the row does not change.)
    """
    tx.execute(RECORD, room="touch", number=0, name="touch", now=0)
    tx.execute(FORGET)


def of_rooms(*rooms: str) -> list[Migration]:
    """The migrations of the named rooms (packages under `holdfast`), in order."""
    found: list[Migration] = []
    for room in rooms:
        folder = files(f"holdfast.{room}").joinpath("migrations")
        named = [(match, entry) for entry in folder.iterdir() if (match := _NAME.match(entry.name))]
        for at, (match, entry) in enumerate(sorted(named, key=lambda pair: pair[1].name), start=1):
            if int(match[1]) != at:
                raise CannotStart(f"the migrations of {room} are not numbered 1, 2, 3, …: {entry.name}")
            found.append(Migration(room, at, match[2], entry.read_text("utf-8")))
    return found


def apply(
    tx: Transaction, run_script: Callable[[str], None], migrations: Sequence[Migration], now_ms: int
) -> list[Migration]:
    """Applies what is missing; the caller holds the lock and commits. Answers what was applied."""
    tx.execute(CREATE_TABLE)
    there = set(tx.rows(APPLIED))
    _refuse_newer(there, migrations)
    missing = [m for m in migrations if (m.room, m.number) not in there]
    for migration in missing:
        try:
            run_script(migration.sql(tx.backend))
        except Exception as error:
            raise CannotStart(f"migration {migration}: {error}") from error
        tx.execute(RECORD, room=migration.room, number=migration.number, name=migration.name, now=now_ms)
    return missing


def _refuse_newer(there: Iterable[tuple[str, int]], migrations: Sequence[Migration]) -> None:
    known: dict[str, int] = {}
    for migration in migrations:
        known[migration.room] = max(known.get(migration.room, 0), migration.number)
    for room, number in there:
        if room in known and number > known[room]:
            raise CannotStart(
                f"this store is from a newer holdfast (its {room} is at {number}, this one knows {known[room]}):"
                " start the newer version"
            )
