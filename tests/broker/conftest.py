"""A broker for every test: in this process, with a real listener on a free port and a real store.

`HOLDFAST_TEST_BROKER=mosquitto` puts a fresh Mosquitto in its place (what needs settings of its own is then skipped):
that is how the tests themselves were tried.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.processes import Child, running
from bench.servers import accepts, free_port
from holdfast.broker.packets import V5, V311
from tests.broker.client import Client

OTHER = os.environ.get("HOLDFAST_TEST_BROKER")
V31_AND_V311 = (3, V311)


class Running:
    def __init__(self, address: str) -> None:
        self.address = address
        self._clients: list[Client] = []

    async def client(self, name: str, version: int = V5, **fields: Any) -> Client:
        client = await Client.connected(self.address, name, version, **fields)
        self._clients.append(client)
        return client

    async def open(self, version: int = V5) -> Client:
        client = await Client.open(self.address, version)
        self._clients.append(client)
        return client

    async def end(self) -> None:
        for client in self._clients:
            client.drop()


Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def begin(**settings: object) -> Running:
            if settings:
                pytest.skip("another broker has its own settings")
            running = Running(stack.enter_context(mosquitto(tmp_path)))
            stack.push_async_callback(running.end)
            return running

        yield begin


@contextmanager
def mosquitto(folder: Path) -> Iterator[str]:
    port = free_port()
    settings = folder / "mosquitto.conf"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
    with running(Child(["mosquitto", "-c", settings], folder / "mosquitto.log")) as child:
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
