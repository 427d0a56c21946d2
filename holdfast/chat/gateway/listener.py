"""What picows tells about one socket, handed to the room: text frames put together, the transport's marks, the end."""

from __future__ import annotations

from collections.abc import Callable

from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from holdfast.chat.gateway.connection import Connection


class Listener(WSListener):
    """One per socket. RFC 6455: a message may come in several frames (5.4), text must be UTF-8 (8.1)."""

    def __init__(
        self,
        made: Callable[[WSTransport], Connection],
        received: Callable[[Connection, bytes], None],
        lost: Callable[[Connection], None],
        longest: int,
    ) -> None:
        self._made = made
        self._received = received
        self._lost = lost
        self._longest = longest
        self._connection: Connection | None = None
        self._parts: bytearray | None = None

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._connection = self._made(transport)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        connection = self._connection
        if connection is None:
            return
        now = connection.heard = connection.now()
        kind = frame.msg_type
        if kind == WSMsgType.TEXT or kind == WSMsgType.BINARY:
            # binary is no part of the contract, and will not be read as JSON by accident
            data = frame.get_payload_as_bytes() if kind == WSMsgType.TEXT else b"\0"
            if frame.fin:
                self._received(connection, data)
            else:
                self._parts = bytearray(data)
        elif kind == WSMsgType.CONTINUATION:
            self._continue(transport, connection, frame)
        elif kind == WSMsgType.PING:
            # answered by us, not by picows, so that pings of a client that reads nothing cost no memory
            if not connection.unwritable and connection.bucket.spend(now):
                transport.send_pong(frame.get_payload_as_bytes())
        elif kind == WSMsgType.CLOSE:
            connection.life.closing()
            transport.send_close(WSCloseCode.OK)
            transport.disconnect()

    def _continue(self, transport: WSTransport, connection: Connection, frame: WSFrame) -> None:
        if self._parts is None:
            transport.send_close(WSCloseCode.PROTOCOL_ERROR)
            transport.disconnect()
            return
        self._parts += frame.get_payload_as_memoryview()
        if len(self._parts) > self._longest:
            transport.send_close(WSCloseCode.MESSAGE_TOO_BIG)
            transport.disconnect()
        elif frame.fin:
            data, self._parts = bytes(self._parts), None
            self._received(connection, data)

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._lost(connection)

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.resume_writing()
