"""WebSocket between two layers: its frames below, MQTT's bytes above. The protocol itself is `websockets`' sans-I/O half.

MQTT packets may cross the borders of frames (MQTT-6.0.0-3), so each binary frame's bytes go up as they come, and a
message of many fragments is held nowhere. What goes down is one binary message per write.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from urllib.parse import urlsplit

from msgspec import Struct
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import LoggerLike, Subprotocol

from holdfast.broker.doors.layers import Above, Consumer
from holdfast.broker.transport import Transport
from holdfast.log import get_logger

PATH = "/mqtt"
SUBPROTOCOL = Subprotocol("mqtt")

log = get_logger("broker")

_silent: LoggerLike = logging.Logger("websockets", logging.CRITICAL + 1)


class Manners(Struct, frozen=True):
    """What is asked of those who come by WebSocket."""

    timeout: float
    """Seconds until the request has to be complete."""
    max_frame: int
    """Bytes of a message, all its frames together."""
    origins: tuple[str, ...] = ()
    """Web pages that may connect; empty: any, or only `own_pages_only`."""
    own_pages_only: bool = False
    trust_proxy: bool = False

    def allow(self, origin: str | None, host: str | None) -> bool:
        """Programs send no origin; a browser cannot leave it out."""
        if origin is None:
            return True
        if self.origins:
            return origin.lower() in self.origins
        if not self.own_pages_only:
            return True
        return host is not None and _host_of(origin) == _host_of(f"//{host}")


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


class WebSocketLayer:
    """| state | left by |
    |---|---|
    | request | its end; anything that is no request; `manners.timeout` |
    | open | `close`, `abort`, a close frame, a frame that is against the rules, a text frame |
    | closed | |
    """

    def __init__(self, below: Transport, above: Above, manners: Manners) -> None:
        self._below = below
        self._make_above = above
        self._above: Consumer | None = None
        self._manners = manners
        self._protocol = ServerProtocol(
            subprotocols=[SUBPROTOCOL], max_size=manners.max_frame, logger=_silent
        )
        self._late = asyncio.get_running_loop().call_later(manners.timeout, self._give_up)
        self._closed = False
        self.address = below.address
        self.certificate_name = below.certificate_name

    # -- from below

    def receive_data(self, data: bytes) -> None:
        if self._closed:
            return
        protocol = self._protocol
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
            elif isinstance(event, Request):
                self._answer(event)
        self._send()
        if protocol.close_expected():
            self._leave()

    def pause_writing(self) -> None:
        if self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        if self._above is not None:
            self._above.resume_writing()

    def connection_lost(self) -> None:
        self._closed = True
        self._late.cancel()
        if self._above is not None:
            self._above.connection_lost()

    # -- from above

    def write(self, data: bytes) -> None:
        if self._closed or self._protocol.state is not State.OPEN:
            return
        self._protocol.send_binary(data)
        self._send()

    def unsent(self) -> int:
        return self._below.unsent()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def close(self, code: CloseCode = CloseCode.NORMAL_CLOSURE) -> None:
        if self._closed:
            return
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code)
        self._leave()

    def abort(self) -> None:
        self._closed = True
        self._below.abort()

    # --

    def _answer(self, request: Request) -> None:
        """101, or one sentence that says what is wrong."""
        protocol, manners = self._protocol, self._manners
        if request.path.partition("?")[0] != PATH:
            response = protocol.reject(HTTPStatus.NOT_FOUND, f"MQTT over WebSocket is at {PATH}.\n")
        elif not manners.allow(request.headers.get("Origin"), request.headers.get("Host")):
            response = protocol.reject(HTTPStatus.FORBIDDEN, "This page may not connect (broker.origins).\n")
        else:
            response = protocol.accept(request)
        protocol.send_response(response)
        self._send()
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            log.info("websocket_refused", address=self.address, status=response.status_code)
            self._leave()
            return
        self._late.cancel()
        if manners.trust_proxy:
            forwarded = request.headers.get("X-Forwarded-For", "")
            self.address = forwarded.rpartition(",")[2].strip() or self.address
        self._above = self._make_above(self)

    def _take(self, frame: Frame) -> None:
        if self._closed or self._above is None:
            return
        if frame.opcode is Opcode.BINARY or frame.opcode is Opcode.CONT:
            self._above.receive_data(bytes(frame.data))
        elif frame.opcode is Opcode.TEXT:
            self.close(CloseCode.UNSUPPORTED_DATA)

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._below.write(data)

    def _leave(self) -> None:
        """Sends what is to be sent, and closes. Twice is harmless."""
        self._closed = True
        self._late.cancel()
        self._send()
        self._below.close()

    def _give_up(self) -> None:
        log.info("websocket_refused", address=self.address, why="timeout")
        self._leave()
