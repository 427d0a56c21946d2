"""What every test may ask for: the databases, each as a fresh store; the servers behind them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.servers.postgresql import Postgresql, binaries
from tests.servers.stores import OpenStore, PostgresqlStores, SqliteStores

__all__ = ["OpenStore", "missing"]

_numbers = count(1)


def missing(what: str) -> None:
    """In CI nothing is skipped; elsewhere one clear line says what is not here."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and in CI nothing is skipped")
    pytest.skip(f"{what} is not installed: `make setup-tests` installs it")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """One cluster for the whole run; tests make databases in it and may kill it."""
    found = binaries()
    if found is None:
        missing("PostgreSQL")
    assert found is not None
    # short, because it holds a socket; new, because a killed run may have left one with our process number
    folder = Path(tempfile.mkdtemp(prefix="holdfast-tests-", dir="/tmp"))
    folder.chmod(0o755)  # the server runs as a user of its own
    server = Postgresql(folder / "postgresql", found)
    server.create()
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def sqlite_stores(tmp_path: Path) -> SqliteStores:
    return SqliteStores(tmp_path)


@pytest.fixture
def postgresql_stores(postgresql: Postgresql) -> Iterator[PostgresqlStores]:
    name = f"t{next(_numbers)}"
    yield PostgresqlStores(postgresql.new_database(name))
    postgresql.drop_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    """The contract of a backend: a test that takes this runs on both."""
    stores: OpenStore = request.getfixturevalue(f"{request.param}_stores")
    return stores
