"""All the doors that the settings name: bound, opened, closed together."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress

from holdfast.addresses import BACKLOG, listening, spelled
from holdfast.broker.doors.gate import Gate
from holdfast.broker.doors.layers import Above, Consumer
from holdfast.broker.doors.tls import TlsLayer, server_context
from holdfast.broker.doors.websocket import Manners, WebSocketLayer
from holdfast.broker.doors.wire import Wire
from holdfast.broker.transport import Transport
from holdfast.metrics import Metrics
from holdfast.settings import Settings

LARGEST_MESSAGE = 1024 * 1024
GOODBYE = 1.0
"""Seconds in which clients may take what is still to be sent to them, when the doors close."""


class _Door:
    """One listening socket, and the connections that came through it."""

    def __init__(self, name: str, listener: socket.socket, above: Above, gate: Gate) -> None:
        self.name = name
        self.address = spelled(listener)
        self.wires: set[Wire] = set()
        self._listener = listener
        self._above = above
        self._gate = gate
        self._server: asyncio.Server | None = None

    async def open(self, high_water: int) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Wire(loop, self._gate, self.wires, self._above, high_water),
            sock=self._listener,
            backlog=BACKLOG,
        )

    def shut(self) -> None:
        if self._server is not None:
            self._server.close()
        self._listener.close()


class Doors:
    """`connect` is the broker's: it makes the peer of a connection."""

    def __init__(self, settings: Settings, metrics: Metrics, connect: Above) -> None:
        broker = settings.broker
        self._settings = settings
        self._connect = connect
        # behind a proxy everybody has the proxy's address here; the broker counts by the one it passes on
        per_address = 0 if settings.http.trust_proxy else broker.max_connections_per_address
        self._gate = Gate(broker.max_connections, per_address)
        self._manners = Manners(
            timeout=broker.connect_timeout,
            max_frame=max(2 * broker.max_packet_size, LARGEST_MESSAGE),
            origins=tuple(origin.lower().rstrip("/") for origin in broker.origins),
            own_pages_only=broker.anonymous,
            trust_proxy=settings.http.trust_proxy,
        )
        self._doors: list[_Door] = []
        self._contexts: dict[str, ssl.SSLContext] = {}
        metrics.gauge(
            "holdfast_mqtt_connections",
            "connections at the MQTT doors, also those that have not said CONNECT yet",
            lambda: self._gate.count,
        )
        metrics.tally(
            "holdfast_mqtt_turned_away",
            "connections that were closed at once because there were too many",
            lambda: self._gate.turned_away,
        )

    @property
    def addresses(self) -> Mapping[str, str]:
        return {door.name: door.address for door in self._doors}

    @property
    def are_wanted(self) -> bool:
        listen = self._settings.listen
        return bool(listen.mqtt or listen.mqtts or listen.mqtt_ws or listen.mqtt_wss)

    def bind(self) -> None:
        """Reads the certificates and takes the ports, or raises `CannotStart`."""
        listen = self._settings.listen
        if listen.mqtt:
            self._add("mqtt", listen.mqtt, self._connect)
        if listen.mqtts:
            self._add("mqtts", listen.mqtts, self._over_tls("mqtt", self._connect))
        if listen.mqtt_ws:
            self._add("mqtt_ws", listen.mqtt_ws, self._over_websocket)
        if listen.mqtt_wss:
            self._add("mqtt_wss", listen.mqtt_wss, self._over_tls("http/1.1", self._over_websocket))

    async def open(self) -> None:
        for door in self._doors:
            await door.open(self._settings.broker.high_water)

    def read_again(self) -> None:
        """Certificates that were renewed count for whoever comes from now on. Raises `CannotStart`."""
        self._contexts.update(
            {protocol: server_context(self._settings.tls, protocol) for protocol in self._contexts}
        )

    def shut(self) -> None:
        """Takes nothing new; who is inside stays."""
        for door in self._doors:
            door.shut()

    async def close(self) -> None:
        """Who was told to go has a moment to hear it; then nobody is left."""
        self.shut()
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE):
                await self._gate.emptied()
        for wire in [wire for door in self._doors for wire in door.wires]:
            wire.abort()
        await self._gate.emptied()

    def _add(self, name: str, address: str, above: Above) -> None:
        self._doors.append(_Door(name, listening(address), above, self._gate))

    def _over_websocket(self, below: Transport) -> Consumer:
        return WebSocketLayer(below, self._connect, self._manners)

    def _over_tls(self, protocol: str, above: Above) -> Above:
        self._contexts[protocol] = server_context(self._settings.tls, protocol)
        timeout = self._settings.broker.connect_timeout
        return lambda below: TlsLayer(below, self._contexts[protocol], above, timeout)
