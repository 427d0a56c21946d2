"""A real server as an operator has it, and clients of it on replicas of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from holdfast.client import Holdfast, Timing
from holdfast.client.holdfast import Transport
from tests.client.world import UNLIMITED, World, ports_to_keep
from tests.faults.process import Server


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A server that runs, and whoever uses it."""
    server = Server(tmp_path / "server", *UNLIMITED)
    async with AsyncExitStack() as ends:
        ends.callback(server.end)
        yield World(server, await server.start(*ports_to_keep()), tmp_path, ends)


class Opener:
    """Replicas that never meet a server."""

    def __init__(self, folder: Path, ends: AsyncExitStack) -> None:
        self._folder = folder
        self._ends = ends

    async def __call__(
        self, name: str = "home", *, transport: Transport = "http", timing: Timing | None = None
    ) -> Holdfast:
        app = Holdfast(self._folder / f"{name}.db", server="127.0.0.1:9", transport=transport, timing=timing)
        return await self._ends.enter_async_context(app)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Opener]:
    async with AsyncExitStack() as ends:
        yield Opener(tmp_path, ends)
