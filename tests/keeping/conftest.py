"""Grounds of both kinds, as many as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.keeping.ground import Ground, ground_at
from tests.servers.postgresql import Postgresql

NewGround = Callable[[str], Ground]

_numbers = count(1)


@pytest.fixture
def new_ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewGround]:
    """`new_ground("sqlite")`, `new_ground("postgresql")`: empty, each in a folder of its own."""
    made: list[str] = []

    def new(backend: str) -> Ground:
        folder = tmp_path / f"data{next(_numbers)}"
        if backend == "sqlite":
            return ground_at(folder)
        server: Postgresql = request.getfixturevalue("postgresql")
        made.append(f"kept{next(_numbers)}")
        return ground_at(folder, server.new_database(made[-1]))

    yield new
    for name in made:
        request.getfixturevalue("postgresql").drop_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def ground(request: pytest.FixtureRequest, new_ground: NewGround) -> Ground:
    return new_ground(request.param)
