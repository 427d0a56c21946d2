"""The least a broker can do: says yes to everything, and hands the bytes of every message on to whoever subscribed.

Shows what the MQTT load reaches at the least. It reads one packet a read to see what it is, and nothing of the others:
messages come from connections that send nothing else.

    python -m bench.load.trivial_broker PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

from bench.load.mqtt_wire import pubacks

SUBSCRIBERS: dict[bytes, list[asyncio.Transport]] = {}


class Trivial(asyncio.Protocol):
    _rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        kind = data[0] >> 4
        if kind == 1:
            self._transport.write(b"\x20\x02\x00\x00")
        elif kind == 8:
            end = 6 + data[5]
            self._topic = data[6:end]
            SUBSCRIBERS.setdefault(self._topic, []).append(self._transport)
            self._transport.write(b"\x90\x03\x00\x01" + data[end : end + 1])
        elif kind == 3:
            size = 2 + data[1]
            count = len(data) // size
            self._rest = data[count * size :]
            whole = data[: count * size]
            topic_end = 4 + data[3]
            if data[0] & 2:
                self._transport.write(pubacks(whole, topic_end, size, count))
            for subscriber in SUBSCRIBERS.get(data[4:topic_end], ()):
                subscriber.write(whole)

    def connection_lost(self, error: Exception | None) -> None:
        for subscribers in SUBSCRIBERS.values():
            if self._transport in subscribers:
                subscribers.remove(self._transport)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Trivial, "127.0.0.1", port, backlog=2_048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
