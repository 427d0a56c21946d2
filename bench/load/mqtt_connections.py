"""Connections of the MQTT load: they say hello, then count what comes by its length alone.

A receiver knows how long each message is and looks at nothing but its first byte and its packet identifier: what
measures a broker must cost far less than the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Self, cast

from bench.load.mqtt_wire import (
    CONNACK_SIZE,
    DISCONNECT,
    PUBACK_SIZE,
    SUBACK_SIZE,
    connect,
    pubacks,
    subscribe,
)

HELLO_SECONDS = 30.0


class Broken(Exception):
    """The broker refused, closed, or sent what nobody asked for."""


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hello = b""
        self.ending = False

    @classmethod
    async def open(cls, address: str, client_id: str, *args: object, clean: bool = True) -> Self:
        host, _, port = address.rpartition(":")
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(HELLO_SECONDS):
            _, made = await loop.create_connection(lambda: cls(*args), host, int(port))
            made.write(connect(client_id, clean=clean))
            await made.greeted
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.write = self.transport.write

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ending:
            raise SystemExit(f"the broker closed a connection of the load ({error})")

    def data_received(self, data: bytes) -> None:
        if self.greeted.done():
            self.received(data)
            return
        self._hello += data
        if len(self._hello) < CONNACK_SIZE:
            return
        hello, rest = self._hello[:CONNACK_SIZE], self._hello[CONNACK_SIZE:]
        if hello[0] != 0x20 or hello[3]:
            self.greeted.set_exception(Broken(f"not let in: {hello.hex()}"))
            return
        self.greeted.set_result(None)
        if rest:
            self.received(rest)

    def received(self, data: bytes) -> None: ...

    def close(self) -> None:
        self.ending = True
        self.write(DISCONNECT)
        self.transport.close()


class Publisher(Connection):
    """Keeps `window` messages of one size unacknowledged; their identifiers go round, since PUBACKs come in order."""

    def __init__(self, packets: Sequence[bytes], limit: int | None = None) -> None:
        super().__init__()
        self._size = len(packets[0]) if packets else 0
        self._window = len(packets)
        self._twice = b"".join(packets) * 2
        self._next = 0
        self._limit = limit
        self._bytes = 0
        self._running = False
        self.sent = 0
        self.acknowledged = asyncio.Event()
        """Everything that was sent is, and no more will be."""

    def start(self) -> None:
        self._running = True
        self._send(self._window)

    def stop(self) -> None:
        self._running = False
        self._look()

    def received(self, data: bytes) -> None:
        before, self._bytes = self._bytes // PUBACK_SIZE, self._bytes + len(data)
        if self._running:
            self._send(self._bytes // PUBACK_SIZE - before)
        self._look()

    def _send(self, count: int) -> None:
        if self._limit is not None:
            count = min(count, self._limit - self.sent)
        at = self._next * self._size
        self.write(self._twice[at : at + count * self._size])
        self._next = (self._next + count) % self._window
        self.sent += count

    def _look(self) -> None:
        finished = not self._running or self.sent == self._limit
        if finished and self._bytes // PUBACK_SIZE == self.sent:
            self.acknowledged.set()


class Subscriber(Connection):
    """Counts messages of one length; at QoS 1 acknowledges them. `counted` is called with how many more there are."""

    def __init__(self, size: int, identifier_at: int, qos: int, counted: Callable[[int], None]) -> None:
        super().__init__()
        self._size, self._at, self._qos, self._counted = size, identifier_at, qos, counted
        self._rest = b""
        self.suback = asyncio.get_running_loop().create_future()

    async def subscribe(self, topic_filter: str) -> None:
        self.write(subscribe(topic_filter, self._qos))
        async with asyncio.timeout(HELLO_SECONDS):
            await self.suback

    def received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        if not self.suback.done():
            data = self._without_suback(data)
        size = self._size
        count = len(data) // size
        end = count * size
        self._rest = data[end:]
        if not count:
            return
        heads = data[0:end:size]
        if heads.count(0x30 | self._qos << 1) != count and any(head >> 4 != 3 for head in heads):
            raise SystemExit(f"not the messages that were sent: {data[:80].hex(' ')}")
        if self._qos:
            self.write(pubacks(data, self._at, size, count))
        self._counted(count)

    def _without_suback(self, data: bytes) -> bytes:
        """A broker may send retained messages before the SUBACK, so it is looked for between them."""
        at = 0
        while at < len(data) and data[at] >> 4 == 3:
            at += self._size
        if at + SUBACK_SIZE > len(data) or data[at] != 0x90:
            return data
        if data[at + 4] > 2:
            self.suback.set_exception(Broken("the subscription was refused"))
        else:
            self.suback.set_result(None)
        return data[:at] + data[at + SUBACK_SIZE :]
