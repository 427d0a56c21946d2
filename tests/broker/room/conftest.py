"""A whole `serve` in this process, with people in it and their MQTT clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from holdfast.accounts import User
from holdfast.app import App
from holdfast.messenger import Messenger
from holdfast.settings import Auth, Broker, Limits, Listen, Log, Settings
from tests.broker.client import Client

ANYWHERE = "127.0.0.1:0"
PLENTY = Limits(library_requests=10**9, requests=10**9, anonymous_requests=10**9)


class Home:
    """`app` runs; clients made here end with it."""

    def __init__(self, app: App, http: httpx.AsyncClient) -> None:
        self.app = app
        self.http = http
        self._clients: list[Client] = []

    @property
    def mqtt(self) -> str:
        return self.app.addresses["mqtt"]

    async def user(self, name: str, *, is_admin: bool = False) -> User:
        return await self.app.accounts.add_user(name, "correct horse", is_admin=is_admin)

    async def token(self, user: User) -> str:
        return await self.app.accounts.access_token_for(await self.app.accounts.user_named(user.name))

    async def client(self, user: User, name: str, version: int = 5, **fields: Any) -> Client:
        token = (await self.token(user)).encode()
        client = await Client.connected(
            self.mqtt, name, version, username=str(user.id), password=token, **fields
        )
        self._clients.append(client)
        return client

    async def stranger(self, version: int = 5) -> Client:
        client = await Client.open(self.mqtt, version)
        self._clients.append(client)
        return client

    async def asks(self, user: User | None, method: str, path: str, **query: object) -> httpx.Response:
        headers = {} if user is None else {"Authorization": f"Bearer {await self.token(user)}"}
        given = {name: str(value) for name, value in query.items()}
        return await self.http.request(method, f"/admin/broker{path}", params=given, headers=headers)

    def leave(self) -> None:
        for client in self._clients:
            client.drop()


Rooms = Callable[[Messenger], None]
OpenHome = Callable[..., AbstractAsyncContextManager[Home]]


@pytest.fixture
def open_home(tmp_path: Path) -> OpenHome:
    settings = Settings(
        data=str(tmp_path / "data"),
        listen=Listen(http=ANYWHERE, mqtt=ANYWHERE, ws=ANYWHERE, mqtt_ws=ANYWHERE),
        auth=Auth(argon2_memory_kib=8, argon2_passes=1),
        limits=PLENTY,
        log=Log(level="error"),
    )

    @asynccontextmanager
    async def opened(rooms: Rooms | None = None, **sections: object) -> AsyncIterator[Home]:
        """`rooms` is called before the start, as a room's constructor would."""
        app = App(msgspec.structs.replace(settings, **sections))
        if rooms is not None:
            rooms(app.broker)
        await app.start()
        try:
            async with httpx.AsyncClient(base_url=f"http://{app.addresses['http']}", timeout=30) as http:
                home = Home(app, http)
                yield home
                home.leave()
        finally:
            await app.stop()

    return opened


@pytest.fixture
async def home(open_home: OpenHome) -> AsyncIterator[Home]:
    async with open_home(broker=Broker(readers=("*:*:public/#",))) as opened:
        yield opened
