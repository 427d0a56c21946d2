"""Doors on free ports with an echo behind them instead of a broker, on both loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress

import pytest
import uvloop

from holdfast.broker.doors import Doors
from holdfast.broker.transport import Transport
from holdfast.metrics import Metrics
from holdfast.settings import Broker, Listen, Settings
from tests.broker.doors.certificates import Authority


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test here runs on both: `holdfast` has uvloop; whoever embeds the broker may not."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "the authority")


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition that nobody announces."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Echo:
    """What stands behind the doors here: it answers with what it gets, and remembers what it was told."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.received = bytearray()
        self.told: list[str] = []
        self.answers = True
        self.lost = asyncio.Event()
        self.paused = asyncio.Event()

    def receive_data(self, data: bytes) -> None:
        self.received += data
        if self.answers:
            self.transport.write(data)

    def pause_writing(self) -> None:
        self.told.append("pause")
        self.paused.set()

    def resume_writing(self) -> None:
        self.told.append("resume")
        self.paused.clear()

    def connection_lost(self) -> None:
        self.told.append("lost")
        self.lost.set()


class House:
    """Doors, and the echoes of everyone who came in."""

    def __init__(self, settings: Settings) -> None:
        self.came: asyncio.Queue[Echo] = asyncio.Queue()
        self.metrics = Metrics()
        self.doors = Doors(settings, self.metrics, self._connect)

    def _connect(self, transport: Transport) -> Echo:
        echo = Echo(transport)
        self.came.put_nowait(echo)
        return echo

    @property
    def connections(self) -> int:
        (line,) = (
            line
            for line in self.metrics.exposition().decode().splitlines()
            if line.startswith("holdfast_mqtt_connections ")
        )
        return int(float(line.split()[1]))

    def port(self, door: str = "mqtt") -> int:
        return int(self.doors.addresses[door].rpartition(":")[2])

    async def guest(self) -> Echo:
        async with asyncio.timeout(10):
            return await self.came.get()


OpenHouse = Callable[..., Awaitable[House]]
Dial = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def open_house() -> AsyncIterator[OpenHouse]:
    houses: list[House] = []

    async def opened(*doors: str, broker: Broker | None = None, **sections: object) -> House:
        names = doors or ("mqtt",)
        listen = Listen(**{"mqtt": "", "mqtt_ws": "", **dict.fromkeys(names, "127.0.0.1:0")})
        house = House(Settings(listen=listen, broker=broker or Broker(), **sections))  # type: ignore[arg-type]
        house.doors.bind()
        houses.append(house)
        await house.doors.open()
        return house

    yield opened
    for house in houses:
        await house.doors.close()


@pytest.fixture
async def dial(open_house: OpenHouse) -> AsyncIterator[Dial]:
    """Connections to 127.0.0.1 that are gone when the test is."""
    writers: list[asyncio.StreamWriter] = []

    async def dialled(port: int, **how: object) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, **how)  # type: ignore[arg-type]
        writers.append(writer)
        return reader, writer

    yield dialled
    for writer in writers:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
