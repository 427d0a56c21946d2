"""One HTTP/1.1 connection, kept open: small and quick, and honest about what it does not know.

A request either gets its whole answer or raises `Cut`, after which nobody knows whether it took place.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import msgspec

PATIENCE = 20.0  # seconds; a server that hangs for longer is a failure of its own


class Cut(Exception):
    """The connection ended before the whole answer was here (or could not be made)."""


class Answered(msgspec.Struct, frozen=True):
    status: int
    body: bytes


class Wire:
    def __init__(self, address: str, token: str | None = None) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self.token = token
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def get(self, path: str) -> Answered:
        return await self._ask("GET", path, b"")

    async def post(self, path: str, body: object, key: str | None = None) -> Answered:
        """`key`: its Idempotency-Key."""
        return await self._ask("POST", path, msgspec.json.encode(body), key)

    async def upload(self, path: str, content: bytes) -> Answered:
        return await self._ask("POST", path, content)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _ask(self, method: str, path: str, body: bytes, key: str | None = None) -> Answered:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._exchange(method, path, body, key)
        except (OSError, EOFError) as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise AssertionError(f"{method} {path}: no answer within {PATIENCE:g} s") from error
            raise Cut from error
        except BaseException:
            self.close()  # half an answer may be on its way: this connection is of no more use
            raise

    async def _exchange(self, method: str, path: str, body: bytes, key: str | None) -> Answered:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        authorization = f"authorization: Bearer {self.token}\r\n" if self.token else ""
        idempotency = f"idempotency-key: {key}\r\n" if key is not None else ""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\n{authorization}{idempotency}"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        first, *headers = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = dict(line.lower().split(": ", 1) for line in headers if line)
        answered = await self._reader.readexactly(int(named.get("content-length", 0)))
        if named.get("connection") == "close":
            self.close()
        return Answered(int(first.split(" ", 2)[1]), answered)
