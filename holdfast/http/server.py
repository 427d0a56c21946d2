"""Granian, embedded: it reads and writes HTTP on its own thread, our code runs on the one loop.

The socket is ours, bound before anything else starts, so that a port in use is one clear sentence.
"""

from __future__ import annotations

import asyncio
import socket

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server
from litestar.types import ASGIApp

from holdfast.addresses import BACKLOG, listening, spelled, split
from holdfast.http.connections import established
from holdfast.metrics import Metrics
from holdfast.settings import Http


class _OnOurSocket(Server):
    """Granian would bind by itself, with SO_REUSEPORT; two servers on one port must be an error.

    It takes the socket over, and closes it when it stops.
    """

    listener: socket.socket

    def _init_shared_socket(self) -> None:
        # its stubs do not know the holder's parameters (descriptor, is it a Unix socket, backlog)
        self._ssp = None
        self._shd = SocketHolder(self.listener.detach(), False, BACKLOG)  # type: ignore[call-arg, assignment]


class HttpServer:
    def __init__(self, address: str, settings: Http, metrics: Metrics) -> None:
        self._listener = listening(address)
        self._settings = settings
        self._server: _OnOurSocket | None = None
        self._serving: asyncio.Task[None] | None = None
        self.address = spelled(self._listener)
        _, port = split(self.address)
        metrics.gauge("holdfast_http_connections", "HTTP connections", lambda: established(port))

    async def start(self, app: ASGIApp) -> None:
        server = _OnOurSocket(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=15_000),
            websockets=False,
            backlog=BACKLOG,
            backpressure=self._settings.max_connections,
            log_enabled=False,
        )
        server.listener = self._listener
        self._server = server
        self._serving = asyncio.create_task(server.serve(), name="http")

    async def stop(self) -> None:
        """Takes no new connection and finishes the requests under way."""
        if self._server is not None and self._serving is not None:
            self._server.stop()  # type: ignore[no-untyped-call]
            await self._serving
        self._listener.close()
