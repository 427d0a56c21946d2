"""A broker in this process: its own loop's, with real doors on free ports and a real store that outlives it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import msgspec

from holdfast.broker.broker import Broker
from holdfast.broker.doors import Doors
from holdfast.broker.packets import V5
from holdfast.clock import SystemClock
from holdfast.metrics import Metrics
from holdfast.settings import Settings
from holdfast.store.migrations import of_rooms
from tests.broker.client import Client
from tests.broker.hooks import OpenHooks
from tests.servers.stores import OpenStore

LISTEN = {"mqtt": "127.0.0.1:0", "mqtt_ws": "127.0.0.1:0"}


class Running:
    """`address` is where clients find it; clients made here end with it."""

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

    async def stop(self) -> None:
        for client in self._clients:
            client.drop()


class InProcess(Running):
    def __init__(self, stores: OpenStore, settings: Settings, hooks: OpenHooks) -> None:
        super().__init__("")
        self._stores = stores
        self._settings = settings
        self.hooks = hooks
        self._stack = AsyncExitStack()
        self._running = False

    async def start(self) -> None:
        db = await self._stack.enter_async_context(self._stores(of_rooms("store", "broker")))
        metrics = Metrics()
        self.broker = Broker(db, self.hooks, SystemClock(), self._settings.broker, metrics)
        self._stack.push_async_callback(self.broker.stop)
        await self.broker.start()
        doors = self._doors = Doors(self._settings, metrics, self.broker.connect)
        doors.bind()
        self._stack.push_async_callback(doors.close)
        self._stack.push_async_callback(self.broker.close)
        self._stack.callback(doors.shut)
        await doors.open()
        self.address = doors.addresses["mqtt"]
        self.websocket = doors.addresses["mqtt_ws"]
        self._running = True

    async def shut(self) -> None:
        """Stops as an operator would: clients are told."""
        if self._running:
            self._running = False
            await self._stack.aclose()

    async def stop(self) -> None:
        await super().stop()
        await self.shut()

    async def restart(self) -> None:
        await self.shut()
        await self.start()


def settings_of(**broker: object) -> Settings:
    """The settings as they are, but for what is named here of the broker's."""
    plain = Settings()
    return msgspec.structs.replace(
        plain,
        broker=msgspec.structs.replace(plain.broker, **broker),
        listen=msgspec.structs.replace(plain.listen, **LISTEN),
    )
