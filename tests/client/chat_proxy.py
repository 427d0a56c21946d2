"""The chat's WebSocket through bad weather, frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import WebSocketException

from tests.client.weather import Weather

MESSAGES = ('"SINGLE_CHAT"', '"GROUP_CHAT"', '"ACK"')


class ChatProxy:
    def __init__(self, weather: Weather, upstream: Callable[[], str]) -> None:
        self.weather = weather
        self._upstream = upstream
        self._server: Server | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await serve(self._serve, "127.0.0.1", 0, ping_interval=None, compression=None)
        host, port = next(iter(self._server.sockets)).getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close(close_connections=True)
        await self._server.wait_closed()

    async def _serve(self, client: ServerConnection) -> None:
        if self.weather.down:
            client.transport.abort()
            return
        with suppress(OSError, WebSocketException):
            async with connect(
                f"ws://{self._upstream()}/ws",
                ping_interval=None,
                compression=None,
                proxy=None,
                close_timeout=0.1,
            ) as server:
                ways = (
                    asyncio.create_task(self._carry(client, server)),
                    asyncio.create_task(self._carry(server, client)),
                )
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                client.transport.abort()
                server.transport.abort()

    async def _carry(
        self, source: ServerConnection | ClientConnection, sink: ServerConnection | ClientConnection
    ) -> None:
        held: str | bytes | None = None
        with suppress(WebSocketException):
            async for frame in source:
                await self.weather.delay()
                if self.weather.down or self.weather.strikes("chat cut", 0.2):
                    return
                known = isinstance(frame, str) and any(word in frame for word in MESSAGES)
                if known and held is None and self.weather.strikes("frame held back"):
                    held = frame
                    continue
                if known and self.weather.strikes("frame doubled"):
                    await sink.send(frame)
                await sink.send(frame)
                if held is not None:
                    await sink.send(held)
                    held = None
