"""HTTP through bad weather, request by request: it knows where one ends, and so can send it twice."""

from __future__ import annotations

import asyncio

from tests.client.weather import Proxy

Head = tuple[bytes, dict[str, str]]


async def read_head(reader: asyncio.StreamReader) -> Head:
    raw = await reader.readuntil(b"\r\n\r\n")
    lines = raw.decode("latin-1").split("\r\n")[1:-2]
    return raw, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """As it is on the wire, chunks and all."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        pieces = []
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            pieces += [line, await reader.readexactly(size + 2)]
            if size == 0:
                return b"".join(pieces)
    return await reader.readexactly(int(headers.get("content-length", "0")))


class HttpProxy(Proxy):
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, headers = await read_head(reader)
            request = head + await read_body(reader, headers)
            await self.weather.delay()
            if self.weather.down or self.weather.strikes("request cut"):
                return
            method = head.split(b" ", 1)[0]
            answer = await self._exchange(request, method)
            if self.weather.strikes("request doubled"):
                second = await self._exchange(request, method)
                answer = second if self.weather.choice(2) else answer
            await self.weather.delay()
            if self.weather.down or self.weather.strikes("answer cut after the commit"):
                return
            if self.weather.strikes("answer cut in the middle", 0.5):
                writer.write(answer[: len(answer) // 2])
                await writer.drain()
                return
            writer.write(answer)
            await writer.drain()

    async def _exchange(self, request: bytes, method: bytes) -> bytes:
        """On a connection of its own, so that requests overtake each other freely."""
        up, down = await self.connect()
        try:
            down.write(request)
            await down.drain()
            head, headers = await read_head(up)
            status = int(head.split(b" ", 2)[1])
            empty = method == b"HEAD" or status in (204, 304)
            return head if empty else head + await read_body(up, headers)
        finally:
            self._open.discard(down)
            down.close()
