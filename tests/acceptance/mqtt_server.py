"""`holdfast broker` as a process, for real clients."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.operations import Doors
from tests.faults.process import Server

COMMAND = (sys.executable, "-m", "holdfast", "broker", "--anonymous", "--mqtt-ws", "127.0.0.1:0")


class Broker:
    """Started; it can be killed and started again on what it kept."""

    def __init__(self, folder: Path) -> None:
        self.server = Server(folder, command=COMMAND, door="--mqtt")
        self._doors: Doors = {}

    @property
    def address(self) -> str:
        return self._doors["mqtt"]

    @property
    def websocket(self) -> str:
        return self._doors["mqtt_ws"]

    async def start(self) -> None:
        self._doors = await self.server.start()

    async def killed_and_started(self) -> None:
        self.server.kill()
        await self.start()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    made = Broker(tmp_path / "data")
    await made.start()
    yield made
    made.server.end()
