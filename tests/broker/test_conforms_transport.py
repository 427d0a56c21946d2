"""What carries the packets (4.2, 6): TCP, and binary WebSocket frames in whatever sizes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from holdfast.broker.packets import (
    V311,
    Connack,
    Connect,
    Decoder,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Side,
    Suback,
    Subscribe,
    Subscription,
    encode,
)
from tests.broker.client import PATIENCE
from tests.broker.conftest import InProcess, Start

MQTT = Subprotocol("mqtt")


@pytest.fixture
async def house(start: Start) -> InProcess:
    broker = await start()
    if not isinstance(broker, InProcess):
        pytest.skip("another broker's WebSocket is another matter")
    return broker


@asynccontextmanager
async def websocket(broker: InProcess, *offered: Subprotocol) -> AsyncIterator[ClientConnection]:
    url = f"ws://{broker.websocket}/mqtt"
    async with connect(url, subprotocols=list(offered) or None, proxy=None) as connection:
        yield connection


async def answers(connection: ClientConnection, version: int, count: int) -> list[Packet]:
    decoder, packets = Decoder(Side.CLIENT, version), []
    async with asyncio.timeout(PATIENCE):
        while len(packets) < count:
            frame = await connection.recv()
            assert isinstance(frame, bytes), "a text frame from the server"
            packets += decoder.receive_data(frame)
    return packets


async def test_the_server_answers_the_subprotocol_mqtt(house: InProcess) -> None:
    async with websocket(house, Subprotocol("other"), MQTT) as connection:
        assert connection.subprotocol == MQTT


async def test_who_offers_no_mqtt_gets_no_mqtt(house: InProcess) -> None:
    with pytest.raises(InvalidHandshake):
        async with websocket(house, Subprotocol("other")):
            pass


async def test_a_text_frame_ends_the_connection(house: InProcess) -> None:
    async with websocket(house, MQTT) as connection:
        await connection.send("this is no packet")
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(PATIENCE):
                await connection.recv()


@pytest.mark.parametrize("size", [1, 3, 1_000])
async def test_packets_and_frames_need_not_meet(house: InProcess, version: int, size: int) -> None:
    said = b"".join(
        encode(packet, version)
        for packet in (
            Connect(version=version, client_id="ws"),
            Subscribe(1, (Subscription("t"),)),
            Publish("t", b"x" * 50),
            Pingreq(),
        )
    )
    async with websocket(house, MQTT) as connection:
        for place in range(0, len(said), size):
            await connection.send(said[place : place + size])
        kinds = [type(packet) for packet in await answers(connection, version, 4)]
        assert kinds[0] is Connack
        assert set(kinds) == {Connack, Suback, Publish, Pingresp}


async def test_a_packet_may_come_in_fragments_of_one_frame(house: InProcess, version: int) -> None:
    said = encode(Connect(version=version, client_id="ws"), version) + encode(Pingreq(), version)
    async with websocket(house, MQTT) as connection:
        await connection.send([said[:3], said[3:9], said[9:]])
        first, second = await answers(connection, version, 2)
        assert isinstance(first, Connack)
        assert isinstance(second, Pingresp)


async def test_both_transports_lead_to_one_broker(house: InProcess, version: int) -> None:
    client = await house.client("tcp", version)
    await client.subscribed("t", qos=1)
    async with websocket(house, MQTT) as connection:
        await connection.send(encode(Connect(version=V311, client_id="ws"), V311))
        await connection.send(encode(Publish("t", b"over there", 1, packet_id=1), V311))
        await client.receive("t", b"over there", 1)


async def test_a_plain_client_needs_no_extension(house: InProcess) -> None:
    """7.0.0-2: the shortest conversation there is, byte by byte as the standard has it."""
    reader, writer = await asyncio.open_connection(*house.address.split(":"))
    async with asyncio.timeout(PATIENCE):
        writer.write(bytes.fromhex("100d 0004 4d515454 04 02 0000 0001 61"))
        assert await reader.readexactly(4) == bytes.fromhex("20020000")
        writer.write(bytes.fromhex("8206 0001 0001 74 00"))
        assert await reader.readexactly(5) == bytes.fromhex("9003000100")
        writer.write(bytes.fromhex("3004 0001 74 21"))
        assert await reader.readexactly(6) == bytes.fromhex("3004 0001 74 21")
        writer.write(bytes.fromhex("e000"))
        assert await reader.read() == b""
    writer.close()
