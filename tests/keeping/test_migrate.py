"""`migrate` brings a store up to date, says what it did, and does nothing the second time."""

from __future__ import annotations

import pytest

from holdfast.app import open_database
from holdfast.errors import CannotStart
from holdfast.keeping.migrate import migrate
from holdfast.metrics import Metrics
from holdfast.store import Database
from tests.keeping.conftest import NewGround
from tests.keeping.ground import KNOWN, ODD_LATER, Ground


def database(ground: Ground) -> Database:
    return open_database(ground.settings, ground.kept.folder, Metrics())


async def test_what_is_missing_is_applied_and_named(ground: Ground) -> None:
    assert await migrate(ground.kept, database(ground), KNOWN) == list(KNOWN)
    assert await migrate(ground.kept, database(ground), [*KNOWN, ODD_LATER]) == [ODD_LATER]
    assert await migrate(ground.kept, database(ground), [*KNOWN, ODD_LATER]) == []


async def test_a_sqlite_store_is_not_migrated_under_its_server(new_ground: NewGround) -> None:
    ground = new_ground("sqlite")
    async with ground.open():
        ground.kept.folder.lock()
        with pytest.raises(CannotStart, match="in use by another holdfast"):
            await migrate(ground.kept, database(ground), [*KNOWN, ODD_LATER])
        ground.kept.folder.unlock()
