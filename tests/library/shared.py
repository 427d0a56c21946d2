"""One house for all tests of a module, where each test has users of its own: a new database costs more than a test.

pytestmark = pytest.mark.asyncio(loop_scope="module")
from tests.library.shared import ann, bob, clock, house
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
import pytest_asyncio

from holdfast.clock import ManualClock
from tests.conftest import OpenStore
from tests.library.conftest import UNLIMITED, Device, House, opened
from tests.servers.postgresql import Postgresql
from tests.servers.stores import PostgresqlStores, SqliteStores

_users = count(1_000_000)
_numbers = count(1)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStore]:
    if request.param == "sqlite":
        yield SqliteStores(tmp_path_factory.mktemp("library"))
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    name = f"library{next(_numbers)}"
    yield PostgresqlStores(server.new_database(name))
    server.drop_database(name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(stores: OpenStore, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with opened(stores, tmp_path_factory.mktemp("files"), ManualClock(), UNLIMITED) as here:
        yield here


@pytest_asyncio.fixture(loop_scope="module")
async def ann(house: House) -> Device:
    return house.device(next(_users))


@pytest_asyncio.fixture(loop_scope="module")
async def bob(house: House) -> Device:
    return house.device(next(_users))
