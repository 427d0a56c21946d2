"""A client that authenticates and then reads nothing more: a socket with a small buffer, no loop behind it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct

SMALL = 4_096


class Deaf:
    def __init__(self, address: str, token: str) -> None:
        host, _, port = address.rpartition(":")
        self._where = (host, int(port))
        self._token = token
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        self._socket.setblocking(False)

    async def log_in(self) -> None:
        """Reads as far as AUTH_OK, and no further."""
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, self._where)
        await loop.sock_sendall(
            self._socket,
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        await self.send({"type": "AUTH", "token": self._token})
        heard = b""
        while b"AUTH_OK" not in heard:
            piece = await loop.sock_recv(self._socket, 512)
            assert piece, "closed before AUTH_OK"
            heard += piece

    async def send(self, frame: dict[str, object]) -> None:
        data = json.dumps(frame).encode()
        head = bytes([0x81, 0x80 | 126]) + struct.pack("!H", len(data)) + bytes(4)  # masked with zeros
        await asyncio.get_running_loop().sock_sendall(self._socket, head + data)

    async def read_to_the_end(self) -> bytes:
        """What the server had sent before it closed; empty when it cut the connection."""
        loop = asyncio.get_running_loop()
        heard = bytearray()
        try:
            while piece := await loop.sock_recv(self._socket, 65_536):
                heard += piece
        except ConnectionResetError:
            pass
        return bytes(heard)

    def close(self) -> None:
        self._socket.close()


def many() -> int:
    """`HOLDFAST_SLOW_READERS`: how many at once; 2,000 is what the issue asks for."""
    return int(os.environ.get("HOLDFAST_SLOW_READERS", "100"))
