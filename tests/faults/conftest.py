"""Where a storm rages: a data folder or a database of its own, and how much of it was asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest

from tests.servers.postgresql import Postgresql

_numbers = count(1)


class Ground(msgspec.Struct, frozen=True):
    """A data folder, and the options that name its store."""

    backend: str
    folder: Path
    options: tuple[str, ...]
    postgresql: Postgresql | None


class Extent(msgspec.Struct, frozen=True):
    """How long a storm lasts. `HOLDFAST_FAULTS=full` is what the issue asks for."""

    kills: int
    acknowledged: int
    seed: int
    load_seconds: float
    """At most this long between two kills."""


@pytest.fixture(params=["sqlite", "postgresql"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    if request.param == "sqlite":
        yield Ground("sqlite", tmp_path / "data", (), None)
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    name = f"storm{next(_numbers)}"
    yield Ground("postgresql", tmp_path / "data", ("--set", f"store.url={server.new_database(name)}"), server)
    server.drop_database(name)


@pytest.fixture
def extent() -> Extent:
    """`HOLDFAST_FAULTS_SEED` repeats a plan."""
    seed = int(os.environ.get("HOLDFAST_FAULTS_SEED", "20261"))
    if os.environ.get("HOLDFAST_FAULTS") == "full":
        return Extent(25, 100_000, seed, 4.0)
    return Extent(5, 2_000, seed, 0.8)
