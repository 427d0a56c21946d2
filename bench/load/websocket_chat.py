"""Our chat over WebSocket: the frames of one-to-one messages, written and read as cheaply as may be.

Frames go out with a mask of zeros: the standard asks a client for a mask, and zeros leave the text as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import cast

import msgspec
from msgspec import Struct

from bench.load.login import Login

BODY = "x" * 64
_TEXT, _CLOSE, _PING, _PONG = 0x81, 0x88, 0x89, 0x8A
_NO_MASK = bytes(4)


class Frame(Struct, rename="camel"):
    """What is looked at in a frame from the server."""

    type: str
    ack_type: str = ""
    reason: str = ""
    server_msg_id: str = ""
    msg_seq: str = ""
    group_id: str = ""


decode = msgspec.json.Decoder(Frame).decode


def masked(payload: bytes, kind: int = _TEXT) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((kind, 0x80 | size)) + _NO_MASK + payload
    if size < 65_536:
        return bytes((kind, 0x80 | 126)) + size.to_bytes(2) + _NO_MASK + payload
    return bytes((kind, 0x80 | 127)) + size.to_bytes(8) + _NO_MASK + payload


class Line(asyncio.Protocol):
    """An authenticated connection. It acknowledges what it receives, once for each piece that was read."""

    def __init__(self, address: str, login: Login) -> None:
        self._address = address
        self._login = login
        self._read = b""
        self._head = b""
        self._upgraded = False
        self.ready = asyncio.get_running_loop().create_future()
        self.closed_because = ""
        self.on_saved: Callable[[int], None] = _nobody
        self.on_delivered: Callable[[int], None] = _nobody

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(
            f"GET /ws HTTP/1.1\r\nHost: {self._address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"closed before AUTH_OK: {self.closed_because}"))

    def talk_to(self, other: Login) -> None:
        self._head = f'{{"type":"SINGLE_CHAT","to":"{other.user}","body":"{BODY}","clientMsgId":"'.encode()

    def talk_in(self, group: str) -> None:
        self._head = f'{{"type":"GROUP_CHAT","groupId":"{group}","body":"{BODY}","clientMsgId":"'.encode()

    def send(self, first: int, count: int) -> None:
        head = self._head
        self._transport.write(b"".join([masked(b'%bm%d"}' % (head, first + n)) for n in range(count)]))

    def data_received(self, data: bytes) -> None:
        self._read += data
        if not self._upgraded and not self._upgrade():
            return
        saved, newest, delivered = 0, "", 0
        for payload in self._payloads():
            frame = decode(payload)
            match frame.type:
                case "ACK":
                    saved += frame.ack_type == "saved"
                case "SINGLE_CHAT" | "GROUP_CHAT":
                    delivered, newest = delivered + 1, frame.server_msg_id
                case "AUTH_OK":
                    self.ready.set_result(None)
                case "ERROR" | "AUTH_FAIL":
                    self.closed_because = frame.reason
        if newest:
            self.acknowledge(newest)
            self.on_delivered(delivered)
        if saved:
            self.on_saved(saved)

    def acknowledge(self, newest: str) -> None:
        self._transport.write(
            masked(b'{"type":"ACK","ackType":"delivered","serverMsgId":"%b"}' % newest.encode())
        )

    def _upgrade(self) -> bool:
        head, end, rest = self._read.partition(b"\r\n\r\n")
        if not end:
            return False
        if b" 101 " not in head[:16]:
            self.closed_because = head[:80].decode("latin-1")
            self._transport.close()
            return False
        self._upgraded, self._read = True, rest
        token = msgspec.json.encode({"type": "AUTH", "token": self._login.secret})
        self._transport.write(masked(token))
        return True

    def _payloads(self) -> Iterator[bytes]:
        """The text frames that have come whole; the others are answered here."""
        read, at = self._read, 0
        while len(read) - at >= 2:
            kind, size, body = read[at], read[at + 1], at + 2
            if size == 126:
                size, body = int.from_bytes(read[at + 2 : at + 4]), at + 4
            elif size == 127:
                size, body = int.from_bytes(read[at + 2 : at + 10]), at + 10
            if len(read) < body + size or body > len(read):
                break
            at = body + size
            if kind == _TEXT:
                yield read[body:at]
            elif kind == _PING:
                self._transport.write(masked(read[body:at], _PONG))
            elif kind == _CLOSE:
                self.closed_because = self.closed_because or f"close {read[body:at]!r}"
        self._read = read[at:]

    def close(self) -> None:
        self._transport.close()


def _nobody(_count: int) -> None: ...


async def connect(address: str, login: Login) -> Line:
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    _, line = await loop.create_connection(lambda: Line(address, login), host, int(port))
    async with asyncio.timeout(60):
        await line.ready
    return line
