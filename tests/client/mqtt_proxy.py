"""MQTT through bad weather, packet by packet: messages late, twice, out of order, connections cut at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.broker.packets import V5, Decoder, Packet, Publish, Side, encode
from tests.client.weather import Proxy, Weather


class MqttProxy(Proxy):
    def __init__(self, weather: Weather, upstream: Callable[[], str]) -> None:
        super().__init__(weather, upstream)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await self.connect()
        try:
            ways = (
                asyncio.create_task(self._carry(Decoder(Side.SERVER), reader, down)),
                asyncio.create_task(self._carry(Decoder(Side.CLIENT, V5), up, writer)),
            )
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self._open.discard(down)
            down.transport.abort()

    async def _carry(
        self, decoder: Decoder, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        held: Publish | None = None
        while data := await source.read(65_536):
            for packet in decoder.receive_data(data):
                await self.weather.delay()
                if self.weather.down or self.weather.strikes("MQTT cut", 0.15):
                    return
                if isinstance(packet, Publish):
                    if held is None and self.weather.strikes("message held back"):
                        held = packet
                        continue
                    if self.weather.strikes("message doubled"):
                        self._send(sink, packet)
                self._send(sink, packet)
                if held is not None:
                    self._send(sink, held)
                    held = None
            if held is not None and self.weather.calm:
                self._send(sink, held)
                held = None
            await sink.drain()

    @staticmethod
    def _send(sink: asyncio.StreamWriter, packet: Packet) -> None:
        sink.write(encode(packet, V5))
