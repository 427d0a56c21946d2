"""Queues: in memory a window of them, on disk all of them; their order, their caps, what is dropped and what never is."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import Disconnect, MessageProperties, Puback, Publish, Pubrec, Pubrel, Reason
from holdfast.broker.session import WINDOW
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import House, Speaker, settle


async def take(reader: Speaker, count: int) -> list[bytes]:
    """Receives and acknowledges."""
    payloads = []
    for _ in range(count):
        packet = await reader.get(Publish)
        payloads.append(packet.payload)
        reader.say(Puback(packet.packet_id) if packet.qos == 1 else Pubrec(packet.packet_id))
        if packet.qos == 2:
            await reader.get(Pubrel)
    return payloads


async def fill(house: House, writer: Speaker, count: int, qos: int = 1, first: int = 0) -> None:
    for number in range(first, first + count):
        writer.publish("t", b"%d" % number, qos)
    await house.broker.journal.drain()
    await settle()
    writer.read().clear()


@pytest.mark.parametrize("is_away", [True, False])
async def test_a_queue_longer_than_its_window_comes_in_order_and_whole(house: House, is_away: bool) -> None:
    reader, writer = await house.lasting("r"), await house.client("w", 4)
    await reader.subscribe("t", 1)
    count = 3 * WINDOW + 123
    if is_away:
        reader.drop()
    await fill(house, writer, count)
    session = house.broker.sessions_by_id["r"]
    assert len(session.outgoing.waiting) <= WINDOW
    if is_away:
        assert not session.outgoing.waiting
        reader = await house.client("r", clean_start=False)
    assert house.broker.queued_count == count
    assert await take(reader, count) == [b"%d" % number for number in range(count)]
    await reader.nothing()
    await house.broker.journal.drain()
    assert house.broker.queued_count == house.broker.queued_bytes == 0


async def test_messages_that_come_while_a_queue_is_being_read_come_after_it(house: House) -> None:
    reader, writer = await house.lasting("r"), await house.client("w", 4)
    await reader.subscribe("t", 1)
    reader.drop()
    await fill(house, writer, WINDOW + 10)
    reader = await house.client("r", clean_start=False)
    received: list[bytes] = []
    for step in range(60):
        writer.publish("t", b"%d" % (WINDOW + 10 + step), 1)
        received += await take(reader, 10)
    received += await take(reader, WINDOW + 10 + 60 - 600)
    assert received == [b"%d" % number for number in range(WINDOW + 70)]
    await reader.nothing()


async def test_no_more_than_the_receive_maximum_is_in_flight(house: House) -> None:
    reader, writer = await house.client("r", receive_maximum=3), await house.client("w", 4)
    await reader.subscribe("t", 2)
    for number in range(10):
        writer.publish("t", b"%d" % number, 2)
    first = await reader.get_all(Publish, 3)
    await reader.nothing()
    reader.say(Pubrec(first[0].packet_id))
    await reader.get(Pubrel)
    await reader.nothing()  # a released message is in flight until PUBCOMP
    from holdfast.broker.packets import Pubcomp

    reader.say(Pubcomp(first[0].packet_id))
    assert (await reader.get(Publish)).payload == b"3"
    reader.say(Pubrec(first[1].packet_id, Reason.UNSPECIFIED))  # an error ends it at once [MQTT-4.3.3]
    assert (await reader.get(Publish)).payload == b"4"
    await reader.nothing()


async def test_more_than_our_receive_maximum_ends_the_connection(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(receive_maximum=2)) as house:
        writer = house.speaker()
        assert (await writer.connect("w")).receive_maximum == 2
        for _ in range(3):
            writer.publish("t", b"", 2)
        await writer.get_all(Pubrec, 2)
        assert (await writer.get(Disconnect)).reason == Reason.RECEIVE_MAXIMUM_EXCEEDED


@pytest.mark.parametrize("is_away", [True, False])
@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
async def test_a_full_queue_drops_by_its_policy_and_says_how_many(
    open_house: OpenHouse, policy: str, is_away: bool
) -> None:
    settings = Settings(queue_count=20, queue_policy=policy, max_inflight=5)  # type: ignore[arg-type]
    async with open_house(settings=settings) as house:
        reader, writer = await house.lasting("r"), await house.client("w", 4)
        await reader.subscribe("t", 1)
        if is_away:
            reader.drop()
        await fill(house, writer, 5)
        await fill(house, writer, 45, first=5)
        assert house.broker.queued_count == 20
        assert house.broker.counters.drops["queue_full"] == 30
        session = house.broker.session("r")
        assert session is not None
        assert session.dropped == 30
        if is_away:
            reader = await house.client("r", clean_start=False)
        received = [int(payload) for payload in await take(reader, 20)]
        if policy == "drop_newest":
            assert received == list(range(20))
        elif is_away:
            assert received == list(range(30, 50))
        else:  # what was in flight already is not dropped
            assert received == [*range(5), *range(35, 50)]
        await reader.nothing()


async def test_a_queue_is_bounded_in_bytes_too(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(queue_bytes=10_000)) as house:
        reader, writer = await house.lasting("r"), await house.client("w", 4)
        await reader.subscribe("t", 1)
        reader.drop()
        for number in range(50):
            writer.publish("t", b"%04d" % number + bytes(996), 1)
        await house.broker.journal.drain()
        assert house.broker.queued_bytes <= 10_000
        writer.publish("t", bytes(11_000), 1)  # no queue takes it, and it drives nothing out
        await house.broker.journal.drain()
        reader = await house.client("r", clean_start=False)
        assert [int(payload[:4]) for payload in await take(reader, 9)] == list(range(41, 50))
        await reader.nothing()


async def test_what_was_sent_before_a_crash_is_not_dropped_after_it(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(queue_count=10, max_inflight=5)) as house:
        clock = house.clock
        reader, writer = await house.lasting("r"), await house.client("w", 4)
        await reader.subscribe("t", 2)
        for number in range(5):
            writer.publish("t", b"%d" % number, 2)
        sent = await reader.get_all(Publish, 5)
        await house.crash()
    async with open_house(settings=Settings(queue_count=10, max_inflight=5), clock=clock) as house:
        writer = await house.client("w", 4)
        await fill(house, writer, 20, qos=2, first=5)
        reader = await house.client("r", clean_start=False)
        again = await reader.get_all(Publish, 5)
        assert [(p.packet_id, p.payload, p.dup) for p in again] == [
            (p.packet_id, p.payload, True) for p in sent
        ]


async def test_a_client_whose_queue_is_full_is_disconnected_where_that_is_the_policy(
    open_house: OpenHouse,
) -> None:
    settings = Settings(queue_count=10, queue_policy="disconnect", max_inflight=5)
    async with open_house(settings=settings) as house:
        reader, writer = await house.lasting("r"), await house.client("w", 4)
        await reader.subscribe("t", 1)
        for number in range(12):
            writer.publish("t", b"%d" % number, 1)
        assert (await reader.get(Disconnect)).reason == Reason.QUOTA_EXCEEDED
        assert house.broker.queued_count == 10


async def test_a_message_expires_in_the_queue_and_a_live_one_says_what_is_left(house: House) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 1)
    reader.drop()
    for expiry in (10, 100, None):
        writer.publish("t", b"", 1, properties=MessageProperties(message_expiry=expiry) if expiry else None)
        await writer.get(Puback)
    house.clock.advance(30)
    reader = await house.client("r", clean_start=False)
    properties = [packet.properties for packet in await reader.get_all(Publish, 2)]
    assert properties == [MessageProperties(message_expiry=70), None]
    await reader.nothing()
    assert house.broker.counters.expired_messages == 1


async def test_expired_messages_leave_the_queues_of_clients_that_are_away(house: House) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 1)
    reader.drop()
    for expiry in (10, 10, 100):
        writer.publish("t", b"%d" % expiry, 1, properties=MessageProperties(message_expiry=expiry))
        await writer.get(Puback)
    house.clock.advance(11)
    assert await house.broker.sweep() == 2
    assert house.broker.queued_count == 1
    reader = await house.client("r", clean_start=False)
    assert (await reader.get(Publish)).payload == b"100"


async def test_a_packet_id_is_not_used_again_before_its_message_is_gone(house: House) -> None:
    reader, writer = await house.client("r", 4), await house.client("w", 4)
    await reader.subscribe("t", 1)
    writer.publish("t", b"stays", 1)
    stays = await reader.get(Publish)
    session = house.broker.sessions_by_id["r"]
    session.outgoing.last = 65_534
    for number in range(3):
        writer.publish("t", b"%d" % number, 1)
    packet = await reader.get(Publish)
    assert packet.packet_id == 65_535
    reader.say(Puback(65_535))
    await reader.nothing()
    reader.say(Puback(stays.packet_id))
    assert [p.packet_id for p in await reader.get_all(Publish, 2)] == [1, 2]


async def test_a_queue_can_be_looked_at_without_its_payloads(house: House) -> None:
    reader, writer = await house.lasting("r", receive_maximum=1), await house.client("w")
    await reader.subscribe("t", 1)
    for _ in range(3):
        writer.publish("t", b"secret", 1)
    await reader.get(Publish)
    queue = await house.broker.queue("r")
    assert [(m.number, m.topic, m.size, m.state) for m in queue] == [
        (1, "t", 6, "sent"),
        (2, "t", 6, "queued"),
        (3, "t", 6, "queued"),
    ]
    reader.drop()
    assert [(m.number, m.state) for m in await house.broker.queue("r", limit=2)] == [
        (1, "sent"),
        (2, "queued"),
    ]
    assert await house.broker.queue("nobody") == []


async def test_qos_0_is_dropped_for_a_slow_reader_first_and_the_rest_waits(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    await reader.subscribe("t", 1)
    reader.wire.stuck = True
    for _ in range(20):
        writer.publish("t", bytes(100_000))
        await settle()
    writer.publish("t", b"kept", 1)
    await settle()
    high = house.broker.settings.high_water
    assert high <= len(reader.wire.sent) <= high + 200_000
    assert house.broker.counters.drops["slow"] > 10
    reader.wire.stuck, reader.wire.buffered = False, 0
    reader.peer.resume_writing()
    await settle()
    packets = reader.read()
    assert isinstance(packets[-1], Publish)
    assert packets[-1].payload == b"kept"


async def test_a_reader_that_takes_nothing_is_disconnected_and_its_session_keeps_the_rest(
    house: House,
) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 1)
    reader.peer.pause_writing()
    house.tick(2.9)
    assert not reader.wire.is_closed
    reader.peer.resume_writing()
    reader.peer.pause_writing()
    house.tick(2.9)
    assert not reader.wire.is_closed
    house.tick(0.2)
    assert reader.wire.is_closed
    writer.publish("t", b"kept", 1)
    again = house.speaker()
    assert (await again.connect("r", clean_start=False)).session_present
    assert (await again.get(Publish)).payload == b"kept"
