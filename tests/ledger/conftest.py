"""The ledger as its users meet it: a whole server on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from holdfast.clock import Clock
from holdfast.settings import Settings
from tests.conftest import OpenStore
from tests.ledger.house import House, house, settings_for

OpenHouse = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
def settings(open_store: OpenStore, tmp_path: Path) -> Settings:
    """Of a server on the test's database."""
    url = open_store.where if open_store.backend == "postgresql" else ""
    return settings_for(tmp_path / "data", url)


@pytest.fixture
async def home(settings: Settings) -> AsyncIterator[House]:
    async with house(settings) as opened:
        yield opened


@pytest.fixture
def quick_settings(tmp_path: Path) -> Settings:
    """Of a server on SQLite: for what no database can make a difference to."""
    return settings_for(tmp_path / "data")


@pytest.fixture
async def quick_home(quick_settings: Settings) -> AsyncIterator[House]:
    async with house(quick_settings) as opened:
        yield opened


@pytest.fixture
def open_house(settings: Settings) -> OpenHouse:
    """Opens the server, and again on the same store after it was closed."""

    def opened(clock: Clock | None = None, **changes: object) -> AbstractAsyncContextManager[House]:
        import msgspec

        return house(msgspec.structs.replace(settings, **changes), clock)

    return opened
