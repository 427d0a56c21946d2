"""A broker for every test: in this process, with a real listener on a free port (or without any) and a real store.

`HOLDFAST_TEST_BROKER=mosquitto` puts a fresh Mosquitto in its place (what needs settings of its own is then skipped):
that is how the tests themselves were tried.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.processes import Child
from bench.processes import running as process
from bench.servers import accepts, free_port
from holdfast.broker.packets import V5, V311
from tests.broker.hooks import OpenHooks
from tests.broker.running import InProcess, Running, settings_of
from tests.broker.speaking import House, migrations, running
from tests.servers.stores import OpenStore, SqliteStores

__all__ = ["InProcess", "Running"]

OTHER = os.environ.get("HOLDFAST_TEST_BROKER")


OpenHouse = Callable[..., AbstractAsyncContextManager[House]]
Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def begin(
            password_for: Mapping[str, str] | None = None, denied: Sequence[str] = (), **settings: object
        ) -> Running:
            if OTHER is None:
                running = in_process(SqliteStores(tmp_path), settings, password_for, denied)
                stack.push_async_callback(running.stop)
                await running.start()
                return running
            if settings or denied or password_for:
                pytest.skip("another broker has its own settings")
            other = Running(stack.enter_context(mosquitto(tmp_path)))
            stack.push_async_callback(other.stop)
            return other

        yield begin


def in_process(
    stores: OpenStore,
    settings: Mapping[str, object],
    password_for: Mapping[str, str] | None = None,
    denied: Sequence[str] = (),
) -> InProcess:
    return InProcess(stores, settings_of(**settings), OpenHooks(password_for, denied))


@contextmanager
def mosquitto(folder: Path) -> Iterator[str]:
    port = free_port()
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
    with process(Child(["mosquitto", "-c", settings], folder / "mosquitto.log")) as child:
        child.wait_until(lambda: True if accepts(port) else None)
        yield f"127.0.0.1:{port}"


@pytest.fixture
async def broker(start: Start) -> Running:
    """With the settings that it starts with."""
    return await start()


@pytest.fixture(params=[V311, V5], ids=["3.1.1", "5.0"])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


def kept(version: int, seconds: int = 3_600) -> dict[str, object]:
    """What a CONNECT says whose session is to outlive the connection."""
    return {"clean": False, "session_expiry": seconds} if version == V5 else {"clean": False}


# -- without a network: see `speaking`


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
