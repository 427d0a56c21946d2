"""How connections end (3.12, 3.14, 4.13, 4.8): by DISCONNECT, by error, by silence. Nobody else notices."""

from __future__ import annotations

import asyncio
from time import monotonic

import pytest

from holdfast.broker.packets import (
    V5,
    V31,
    Auth,
    Connack,
    Decoder,
    Disconnect,
    Pingreq,
    Pingresp,
    Publish,
    Reason,
    Side,
)
from tests.broker.conftest import Running, Start, kept
from tests.broker.wire_bad import BAD, FIRST
from tests.broker.wire_examples import Bad

WRONG = [row for row in BAD if row.reader is Side.SERVER]


async def test_a_ping_is_answered(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.send(Pingreq(), Pingreq())
    await client.expect(Pingresp(), Pingresp())


async def test_disconnect_is_the_end_and_is_not_answered(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    watcher = await broker.client("w", version)
    await watcher.subscribed("t")
    await client.send(Publish("t", b"before"), Disconnect(), Publish("t", b"after"), Pingreq())
    assert await client.closed() is None
    await watcher.receive("t", b"before")
    await watcher.quiet()


async def test_silence_for_one_and_a_half_keep_alives_is_the_end(broker: Running, version: int) -> None:
    client = await broker.client("s", version, keep_alive=1)
    assert client.connack.server_keep_alive is None
    began = monotonic()
    await client.expect_end(Reason.KEEP_ALIVE_TIMEOUT)
    assert monotonic() - began >= 1.4


async def test_any_packet_breaks_the_silence(broker: Running, version: int) -> None:
    client = await broker.client("s", version, keep_alive=1)
    for _ in range(4):
        await asyncio.sleep(0.6)
        await client.send(Publish("t", b"1"))
    await client.quiet()


async def test_half_a_packet_does_not_break_it(broker: Running, version: int) -> None:
    """3.1.2-22: what counts is a packet, or who sends a byte now and then would never go."""
    client = await broker.client("s", version, keep_alive=1)
    for _ in range(2):
        await client.send_bytes(b"\x30")
        await asyncio.sleep(0.1)
        break
    await client.closed()


async def test_without_a_keep_alive_silence_is_no_end(broker: Running, version: int) -> None:
    client = await broker.client("s", version, keep_alive=0)
    await asyncio.sleep(2)
    await client.quiet()


async def test_the_servers_keep_alive_is_told_and_kept_to(start: Start) -> None:
    broker = await start(server_keep_alive=1)
    client = await broker.client("s", V5, keep_alive=1_000)
    assert client.connack.server_keep_alive == 1
    await client.expect_end(Reason.KEEP_ALIVE_TIMEOUT)


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row.label)
async def test_wrong_bytes_end_the_connection_with_their_reason(broker: Running, row: Bad) -> None:
    other = await broker.client("other", row.version)
    client = await broker.client("bad", row.version)
    await client.send_bytes(row.data)
    said = await client.closed()
    if row.version == V5:
        assert isinstance(said, Disconnect)
        assert said.reason == row.reason
    else:
        assert said is None
    await other.quiet()


@pytest.mark.parametrize("row", FIRST, ids=lambda row: row.label)
async def test_wrong_first_bytes_end_the_connection(broker: Running, row: Bad) -> None:
    other = await broker.client("other", row.version)
    client = await broker.open(row.version)
    await client.send_bytes(row.data)
    said = await client.closed_with_bytes()
    if row.clause == "MQTT-3.1.2-2":
        assert said == b"\x20\x02\x00\x01"
    elif row.version == V5 and said:
        (connack,) = Decoder(Side.CLIENT, V5).receive_data(said)
        assert isinstance(connack, Connack)
        assert connack.reason == row.reason
    else:
        assert said == b""
    await other.quiet()


async def test_what_came_before_the_wrong_bytes_counts(broker: Running, version: int) -> None:
    watcher = await broker.client("w", version)
    await watcher.subscribed("t", qos=1)
    client = await broker.client("bad", version)
    await client.send(Publish("t", b"1", 1, packet_id=1))
    await client.send_bytes(b"\x00\x00")
    await watcher.receive("t", b"1", 1)


async def test_a_session_outlives_the_wrong_bytes_of_its_client(broker: Running, version: int) -> None:
    client = await broker.client("bad", version, **kept(version))
    await client.subscribed("t", qos=1)
    await client.send_bytes(b"\xff\xff")
    await client.closed()
    other = await broker.client("p", version)
    await other.publish("t", b"1", 1)
    client = await broker.client("bad", version, present=True, **kept(version))
    await client.receive("t", b"1", 1)


async def test_no_word_comes_before_connect(broker: Running, version: int) -> None:
    """3.14.0-1: nobody is told DISCONNECT before CONNACK."""
    client = await broker.open(version)
    await client.send_bytes(b"\xe0\x00")
    assert await client.closed_with_bytes() == b""


async def test_who_never_says_connect_is_closed(start: Start, version: int) -> None:
    broker = await start(connect_timeout=0.5)
    client = await broker.open(version)
    assert await client.closed_with_bytes() == b""


async def test_who_says_half_of_connect_is_closed(start: Start, version: int) -> None:
    broker = await start(connect_timeout=0.5)
    client = await broker.open(version)
    await client.send_bytes(b"\x10\x20\x00\x04MQ")
    assert await client.closed_with_bytes() == b""


async def test_a_version_that_is_not_spoken_is_refused(start: Start) -> None:
    broker = await start(versions=("4",))
    for version in (V31, V5):
        client = await broker.open(version)
        connack = await client.connect("s")
        assert connack.reason == Reason.UNSUPPORTED_PROTOCOL_VERSION
        assert await client.closed() is None


async def test_a_server_that_stops_says_so(start: Start, version: int) -> None:
    broker = await start()
    client = await broker.client("s", version)
    await broker.shut()
    await client.expect_end(Reason.SERVER_SHUTTING_DOWN)


async def test_packets_may_come_in_any_pieces(broker: Running, version: int) -> None:
    """4.2: only the order of the bytes counts."""
    from holdfast.broker.packets import Connect, Subscribe, Subscription, encode

    client = await broker.open(version)
    said = b"".join(
        encode(packet, version)
        for packet in (
            Connect(version=version, client_id="bytes"),
            Subscribe(1, (Subscription("t", 1),)),
            Publish("t", b"1", 1, packet_id=2),
            Pingreq(),
        )
    )
    client._watch.sent(Connect(version=version, client_id="bytes"))
    client._watch.sent(Subscribe(1, (Subscription("t", 1),)))
    client._watch.sent(Publish("t", b"1", 1, packet_id=2))
    client._watch.sent(Pingreq())
    for place in range(len(said)):
        await client.send_bytes(said[place : place + 1])
        await asyncio.sleep(0)
    await client.expect_a(Connack, reason=0)
    kinds = {type(await client.next()).__name__ for _ in range(4)}
    assert kinds == {"Suback", "Puback", "Publish", "Pingresp"}


async def test_auth_out_of_place_ends_the_connection(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.send(Auth(reason=Reason.REAUTHENTICATE, authentication_method="any"))
    await client.expect_end(Reason.PROTOCOL_ERROR)
