"""The two databases as a test opens them: new and empty the first time, what was there the times after."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store import Database
from holdfast.store.migrations import Migration
from holdfast.store.postgresql import PostgresqlDatabase
from holdfast.store.sqlite import SqliteDatabase


class OpenStore(Protocol):
    """Opens a new, empty store (or again the one that it opened before, after it was stopped)."""

    backend: str
    where: str
    """A path or an address: what another process needs to open it too."""

    def make(self, settings: Store = ..., metrics: Metrics | None = ...) -> Database: ...

    def __call__(
        self, migrations: Sequence[Migration], settings: Store = ..., metrics: Metrics | None = ...
    ) -> AbstractAsyncContextManager[Database]: ...


@asynccontextmanager
async def started(database: Database, migrations: Sequence[Migration]) -> AsyncIterator[Database]:
    await database.start(migrations)
    try:
        yield database
    finally:
        await database.stop()


class SqliteStores:
    backend = "sqlite"

    def __init__(self, folder: Path, vfs: str | None = None) -> None:
        self.path = folder / "holdfast.db"
        self.where = str(self.path)
        self._vfs = vfs

    def make(self, settings: Store = Store(), metrics: Metrics | None = None) -> SqliteDatabase:
        return SqliteDatabase(self.path, settings, metrics, vfs=self._vfs)

    def __call__(
        self, migrations: Sequence[Migration], settings: Store = Store(), metrics: Metrics | None = None
    ) -> AbstractAsyncContextManager[Database]:
        return started(self.make(settings, metrics), migrations)


class PostgresqlStores:
    backend = "postgresql"

    def __init__(self, url: str) -> None:
        self.url = url
        self.where = url

    def make(self, settings: Store = Store(), metrics: Metrics | None = None) -> PostgresqlDatabase:
        return PostgresqlDatabase(msgspec.structs.replace(settings, url=self.url), metrics)

    def __call__(
        self, migrations: Sequence[Migration], settings: Store = Store(), metrics: Metrics | None = None
    ) -> AbstractAsyncContextManager[Database]:
        return started(self.make(settings, metrics), migrations)


def stores_at(where: str) -> OpenStore:
    """For a process that was given `where`."""
    return PostgresqlStores(where) if where.startswith("postgresql:") else SqliteStores(Path(where).parent)
