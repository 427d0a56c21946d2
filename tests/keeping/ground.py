"""A store of either kind with something of everything in it, as the operator's commands find it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from holdfast import blobs, feed
from holdfast.accounts.accounts import Accounts
from holdfast.app import ROOMS, open_database
from holdfast.blobs import Blob, BlobRoom
from holdfast.clock import SystemClock
from holdfast.keeping.places import Kept, kept_by
from holdfast.metrics import Metrics
from holdfast.settings import Auth, Settings, Store
from holdfast.store import Database, Statement, Transaction
from holdfast.store.migrations import Migration, of_rooms
from holdfast.store.statement import Value
from holdfast.store.whole import quoted

CLOCK = SystemClock()
CHEAP = Auth(argon2_memory_kib=8, argon2_passes=1)

# Every type that a column may have, keys over two columns, a table that refers to itself and one that comes first
# by name and second by reference; a table that nothing is in.
ODD = Migration(
    "odd",
    1,
    "odd",
    """
    CREATE TABLE odd_parent (id BIGINT PRIMARY KEY, above BIGINT REFERENCES odd_parent (id));
    CREATE TABLE odd_child (
        parent BIGINT NOT NULL REFERENCES odd_parent (id) ON DELETE CASCADE,
        "order" INTEGER NOT NULL,
        small SMALLINT,
        text TEXT,
        bytes BYTEA,
        real DOUBLE PRECISION,
        flag BOOLEAN,
        PRIMARY KEY (parent, "order")
    );
    CREATE TABLE odd_empty (id BIGINT PRIMARY KEY);
    """,
)
ODD_LATER = Migration(
    "odd", 2, "later", "ALTER TABLE odd_parent ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"
)
ODD_LATEST = Migration("odd", 3, "latest", "ALTER TABLE odd_parent ADD COLUMN last TEXT")

KNOWN = (*of_rooms(*ROOMS), ODD)


class Ground(msgspec.Struct, frozen=True):
    kept: Kept

    @property
    def settings(self) -> Settings:
        return self.kept.settings

    @asynccontextmanager
    async def open(self, migrations: Sequence[Migration] = KNOWN) -> AsyncIterator[World]:
        """The rooms as the server has them, without its doors."""
        folder = self.kept.folder
        folder.create()
        db = open_database(self.settings, folder, Metrics())
        await db.start(migrations)
        accounts = Accounts(db, self.settings.auth, CLOCK)
        room = BlobRoom(db, folder.blobs, CLOCK, self.settings.blobs, Metrics())
        await db.write(feed.ensure_epoch)
        await accounts.start()
        try:
            yield World(db, accounts, room)
        finally:
            await room.files.stop()
            await accounts.stop()
            await db.stop()

    def contents(self) -> dict[str, list[tuple[Value, ...]]]:
        """Every row of every table, in an order of its own; 0 and 1 for booleans."""
        with self.kept.store.snapshot() as whole:
            return {
                table.name: sorted((tuple(map(_plain, row)) for row in whole.rows(table)), key=repr)
                for table in whole.tables()
            }

    def execute(self, *statements: str) -> None:
        """Damages the store: no constraint holds meanwhile."""
        self.kept.store.write(lambda tx: [_run(tx, text) for text in statements])


class World:
    def __init__(self, db: Database, accounts: Accounts, room: BlobRoom) -> None:
        self.db = db
        self.accounts = accounts
        self.room = room

    async def furnish(self) -> None:
        """Two users, one logged in; three files, one of them referred to, one large; odd rows."""
        await self.accounts.add_user("ann", "correct horse")
        await self.accounts.add_user("Zoë", "correct horse", is_admin=True)
        await self.accounts.log_in("ann", "correct horse", "127.0.0.1")
        for content in (b"a song", b"", bytes(range(256)) * 8_000):
            await self.keep(content)
        await self.db.write(add_odd_rows)

    async def keep(self, content: bytes) -> Blob:
        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(content), 100_000):
                yield content[at : at + 100_000]

        return await self.room.files.receive(chunks(), limit=10**8, holder="test")

    async def refer(self, blob: Blob) -> None:
        await self.db.write(blobs.reference, blob.sha256, CLOCK.now_ms(), holder="test")

    async def release(self, blob: Blob) -> None:
        await self.db.write(blobs.release, blob.sha256, CLOCK.now_ms())

    async def content(self, sha256: str) -> bytes:
        async with await self.room.files.open(sha256) as download:
            return b"".join([piece async for piece in download.stream()])


ODD_PARENTS: Sequence[tuple[Value, ...]] = [(1, None), (2, 1), (-(2**63), 2), (2**63 - 1, -(2**63))]
ODD_CHILDREN: Sequence[tuple[Value, ...]] = [
    (1, 1, None, None, None, None, None),
    (1, 2, -32768, "", b"", 0.0, False),
    (2, -(2**31), 32767, "NULL", b"\x00\xff\\x", -0.1, True),
    (2, 2**31 - 1, 0, "tab\tline\nreturn\r\\N\\.", bytes(range(256)), 1e308, True),
    (2**63 - 1, 0, 1, "Zoë 文 \U0001f3b5 e\u0301 \ufeff \u2028", b"\n", 5e-324, False),
    (2**63 - 1, 1, 1, "x" * 3_000_000, b"y" * 3_000_000, float("inf"), None),
]


def add_odd_rows(tx: Transaction) -> None:
    """In words of their own: a named parameter for each column."""
    insert(tx, "odd_parent", ("id", "above"), ODD_PARENTS)
    insert(tx, "odd_child", ("parent", "order", "small", "text", "bytes", "real", "flag"), ODD_CHILDREN)


def insert(tx: Transaction, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
    names = [f"v{number}" for number, _ in enumerate(columns)]
    listed = ", ".join(map(quoted, columns))
    statement = Statement(
        f"INSERT INTO {table} ({listed}) VALUES ({', '.join(f':{name}' for name in names)})"
    )
    for row in rows:
        tx.execute(statement, **dict(zip(names, row, strict=True)))


def _run(tx: Transaction, text: str) -> int:
    return tx.execute(Statement(text))


def _plain(value: Value) -> Value:
    return int(value) if isinstance(value, bool) else value


def ground_at(folder: Path, url: str = "") -> Ground:
    return Ground(kept_by(Settings(data=str(folder), store=Store(url=url), auth=CHEAP)))
