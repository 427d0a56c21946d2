"""What every test may ask for: the databases, each as a fresh store; the servers behind them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

import msgspec
import pytest

from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store import Database
from holdfast.store.migrations import Migration
from holdfast.store.postgresql import PostgresqlDatabase
from holdfast.store.sqlite import SqliteDatabase
from tests.servers.postgresql import Postgresql, binaries

_numbers = count(1)


def missing(what: str) -> None:
    """In CI nothing is skipped; elsewhere one clear line says what is not here."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and in CI nothing is skipped")
    pytest.skip(f"{what} is not installed: `make setup-tests` installs it")


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgresql]:
    """One cluster for the whole run; tests make databases in it and may kill it."""
    found = binaries()
    if found is None:
        missing("PostgreSQL")
    assert found is not None
    folder = Path("/tmp") / f"holdfast-tests-{os.getpid()}" / "postgresql"  # short: it holds a socket
    server = Postgresql(folder, found)
    server.create()
    server.start()
    yield server
    server.stop()


class OpenStore(Protocol):
    """Opens a new, empty store (or again the one that it opened before, after it was stopped)."""

    backend: str

    def __call__(
        self, migrations: list[Migration], settings: Store = ..., metrics: Metrics | None = ...
    ) -> AbstractAsyncContextManager[Database]: ...


class SqliteStores:
    backend = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "holdfast.db"

    @asynccontextmanager
    async def __call__(
        self, migrations: list[Migration], settings: Store = Store(), metrics: Metrics | None = None
    ) -> AsyncIterator[Database]:
        database = SqliteDatabase(self.path, settings, metrics)
        await database.start(migrations)
        try:
            yield database
        finally:
            await database.stop()


class PostgresqlStores:
    backend = "postgresql"

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def __call__(
        self, migrations: list[Migration], settings: Store = Store(), metrics: Metrics | None = None
    ) -> AsyncIterator[Database]:
        database = PostgresqlDatabase(msgspec.structs.replace(settings, url=self.url), metrics)
        await database.start(migrations)
        try:
            yield database
        finally:
            await database.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """The contract of a backend: a test that takes this runs on both."""
    if request.param == "sqlite":
        yield SqliteStores(tmp_path)
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    name = f"t{next(_numbers)}"
    yield PostgresqlStores(server.new_database(name))
    server.drop_database(name)
