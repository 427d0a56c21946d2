"""A TCP connection: the lowest layer.

| state | reads | writes | left by |
|---|---|---|---|
| open | into the layer above | yes | `close`, `abort`, the other side's end |
| closing | and throws away | what is buffered, then our end (FIN) | the other side's end, or `LINGER` |
| gone | no | no | |

Closing waits for the other side because a socket that is closed with unread bytes in it answers them with a reset,
and the reset may overtake the DISCONNECT that says why. The layer above is told at once that its connection is lost.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from holdfast.broker.doors.gate import Gate
from holdfast.broker.doors.layers import Above, Consumer
from holdfast.log import get_logger

LINGER = 3.0
KEEPALIVE = (  # a connection whose machine has vanished is noticed after about four minutes
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 120),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 30),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 4),
)

log = get_logger("broker")


class Wire(asyncio.Protocol):
    """One connection. `wires` is where it stands as long as it is not gone."""

    __slots__ = (
        "_above",
        "_clogged",
        "_closing",
        "_consumer",
        "_gate",
        "_held",
        "_high_water",
        "_leave",
        "_lingering",
        "_loop",
        "_raw",
        "_wires",
        "address",
        "write",
    )
    write: Callable[[bytes], None]
    certificate_name = None

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        gate: Gate,
        wires: set[Wire],
        above: Above,
        high_water: int,
    ) -> None:
        self._loop = loop
        self._gate = gate
        self._wires = wires
        self._above = above
        self._high_water = high_water
        self._consumer: Consumer | None = None
        self._leave: Callable[[], None] | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._held = self._clogged = self._closing = False
        self.address = ""
        self.write = _nowhere

    # -- the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = raw = cast("asyncio.Transport", transport)
        peer = raw.get_extra_info("peername")
        self.address = peer[0] if peer else ""
        self._leave = self._gate.enter(self.address)
        if self._leave is None:
            log.debug("connection_turned_away", address=self.address)
            self._closing = True
            raw.abort()
            return
        self._wires.add(self)
        self.write = raw.write
        raw.set_write_buffer_limits(high=self._high_water, low=self._high_water // 4)
        _keep_alive(raw.get_extra_info("socket"))
        self._consumer = self._above(self)

    def data_received(self, data: bytes) -> None:
        if not self._closing and self._consumer is not None:
            self._consumer.receive_data(data)

    def eof_received(self) -> None:
        """The other side has said all: so have we, once what is buffered has gone."""
        self._begin_to_close()

    def pause_writing(self) -> None:
        """Who does not read what we answer is not read either: else his pings alone could fill our memory."""
        self._clogged = True
        self._follow()
        if self._consumer is not None:
            self._consumer.pause_writing()

    def resume_writing(self) -> None:
        self._clogged = False
        self._follow()
        if self._consumer is not None:
            self._consumer.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.write = _nowhere
        self._closing = True
        self._wires.discard(self)
        if self._leave is not None:
            self._leave()
            self._leave = None
        if self._lingering is not None:
            self._lingering.cancel()
        self._part()

    # -- the layer above asks

    def unsent(self) -> int:
        return self._raw.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._held = True
        self._follow()

    def resume_reading(self) -> None:
        self._held = False
        self._follow()

    def close(self) -> None:
        if self._begin_to_close():
            self._raw.resume_reading()
            try:
                self._raw.write_eof()
            except OSError:  # asyncio shuts the socket down at once, and the other side has reset it already
                self._raw.abort()

    def abort(self) -> None:
        self.write = _nowhere
        self._closing = True
        self._raw.abort()

    # --

    def _begin_to_close(self) -> bool:
        if self._closing:
            return False
        self._closing = True
        self.write = _nowhere
        self._lingering = self._loop.call_later(LINGER, self._raw.abort)
        self._loop.call_soon(self._part)
        return True

    def _follow(self) -> None:
        """Reads while nobody objects. While closing, everything is read, and thrown away."""
        if self._closing:
            return
        if self._held or self._clogged:
            self._raw.pause_reading()
        else:
            self._raw.resume_reading()

    def _part(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.connection_lost()


def _nowhere(_data: bytes) -> None:
    """What is written to a closed connection."""


def _keep_alive(connection: socket.socket | None) -> None:
    if connection is None:
        return
    for level, name, value in KEEPALIVE:
        option = getattr(socket, name, None)  # not every system has each
        if option is not None:
            connection.setsockopt(level, option, value)
