"""The least a server can do: the same bytes for every request. Shows what a load generator reaches at the least.

python -m bench.load.trivial_server PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

ANSWER = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{"status":"ok"}'
CLOSING = ANSWER.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)


class Trivial(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if b"Connection: close" in data:
            self._transport.write(CLOSING)
            self._transport.close()
        else:
            self._transport.write(ANSWER)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Trivial, "127.0.0.1", port, backlog=2_048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
