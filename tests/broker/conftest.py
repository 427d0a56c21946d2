"""A broker on a fresh SQLite store, for tests that speak to one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.broker.speaking import House, migrations, running
from tests.servers.stores import SqliteStores

OpenHouse = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
def open_house(sqlite_stores: SqliteStores) -> OpenHouse:
    """Opens a broker; the next one on the same store finds what the last one kept."""

    @asynccontextmanager
    async def opened(**fields: Any) -> AsyncIterator[House]:
        async with sqlite_stores(migrations()) as db, running(db, **fields) as house:
            yield house

    return opened


@pytest.fixture
async def house(open_house: OpenHouse) -> AsyncIterator[House]:
    async with open_house() as opened:
        yield opened
