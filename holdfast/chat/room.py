"""Wires the room: message delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from litestar import Router

from holdfast.accounts.accounts import Accounts
from holdfast.chat.gateway.gateway import Gateway
from holdfast.chat.http import router
from holdfast.clock import Clock
from holdfast.cluster import Cluster, RedisCluster
from holdfast.ids import IdMaker
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database


class ChatRoom(Service):
    def __init__(
        self, db: Database, accounts: Accounts, clock: Clock, settings: Settings, metrics: Metrics
    ) -> None:
        new_id = IdMaker(clock)
        self.cluster: Cluster = RedisCluster(settings.redis, metrics) if settings.redis.url else Cluster()
        self.gateway = Gateway(db, accounts, clock, settings, metrics, new_id, self.cluster)
        self._router = router(db, settings, clock, new_id)

    def routers(self) -> Sequence[Router]:
        return [self._router]

    @property
    def addresses(self) -> Mapping[str, str]:
        address = self.gateway.address
        return {} if address is None else {"ws": address}

    def bind(self) -> None:
        self.gateway.bind()

    async def start(self) -> None:
        await self.gateway.start()

    async def open(self) -> None:
        await self.gateway.open()

    async def close(self) -> None:
        await self.gateway.close()

    async def stop(self) -> None:
        await self.gateway.stop()
