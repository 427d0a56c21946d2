"""Retained messages: kept, replaced, cleared, and replayed to new subscriptions, however many."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import (
    MessageProperties,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    Subscription,
)
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import House, held_commits, settle


async def test_the_last_retained_message_of_a_topic_is_sent_to_a_new_subscriber(house: House) -> None:
    writer = await house.client("w")
    for payload in (b"1", b"2"):
        writer.publish("t", payload, retain=True)
    writer.publish("t", b"3")
    reader = await house.client("r")
    await reader.subscribe("t", 2)
    packet = await reader.get(Publish)
    assert (packet.payload, packet.retain, packet.qos) == (b"2", True, 0)
    writer.publish("t", b"", retain=True)
    assert (await reader.get(Publish)).payload == b""
    other = await house.client("o")
    await other.subscribe("t")
    await other.nothing()
    assert house.broker.retained_count == 0


async def test_retain_handling_decides_whether_a_subscription_replays(house: House) -> None:
    writer, reader = await house.client("w"), await house.client("r")
    writer.publish("t", b"kept", retain=True)
    await reader.subscribe("t", retain_handling=2)
    await reader.nothing()
    await reader.subscribe("t", retain_handling=1)
    await reader.nothing()
    await reader.unsubscribe("t")
    await reader.subscribe("t", retain_handling=1)
    assert (await reader.get(Publish)).payload == b"kept"
    await reader.subscribe("t", retain_handling=0)
    assert (await reader.get(Publish)).payload == b"kept"


async def test_retain_is_shown_as_published_only_to_who_asked_for_it(house: House) -> None:
    writer, plain, exact = await house.client("w"), await house.client("p"), await house.client("e")
    await plain.subscribe("t", 1)
    await exact.subscribe("t", 1, retain_as_published=True)
    for qos in (0, 1):
        writer.publish("t", b"", qos, retain=True)
        assert (await plain.get(Publish)).retain is False
        assert (await exact.get(Publish)).retain is True
        writer.publish("t", b"x", qos)
        assert (await plain.get(Publish)).retain is (await exact.get(Publish)).retain is False


@pytest.mark.parametrize("is_lasting", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_very_many_retained_messages_are_replayed_whole(
    house: House, is_lasting: bool, qos: int
) -> None:
    count = 3_500
    for number in range(count):
        house.broker.send(f"t/{number}", b"%d" % number, qos=number % 3, retain=True)
    reader = await (house.lasting("r", 4) if is_lasting else house.client("r", 4))
    await reader.subscribe("t/#", qos)
    received = set()
    while len(received) < count:
        packet = await reader.get(object)
        if isinstance(packet, Pubrel):
            reader.say(Pubcomp(packet.packet_id))
            continue
        assert isinstance(packet, Publish)
        assert packet.retain
        assert packet.qos == min(qos, int(packet.payload) % 3)
        received.add(packet.payload)
        if packet.qos:
            reader.say(Puback(packet.packet_id) if packet.qos == 1 else Pubrec(packet.packet_id))


async def test_a_slow_reader_holds_back_a_replay(house: House) -> None:
    for number in range(200):
        house.broker.send(f"t/{number}", bytes(10_000), qos=0, retain=True)
    reader = await house.client("r")
    reader.wire.stuck = True
    await reader.subscribe("t/#")
    await settle()
    high = house.broker.settings.high_water
    assert len(reader.wire.sent) <= high + 20_000
    for _ in range(10):
        reader.wire.buffered = 0
        reader.peer.resume_writing()
        await settle()
    assert len([p for p in reader.read() if isinstance(p, Publish)]) == 200


async def test_a_replay_into_a_lasting_queue_is_on_disk_before_suback(open_house: OpenHouse) -> None:
    async with open_house() as house:
        clock = house.clock
        for number in range(1_500):
            house.broker.send(f"t/{number}", b"%d" % number, qos=1, retain=True)
        await house.broker.journal.drain()
        reader = await house.lasting("r")
        await reader.subscribe("t/#", 2)
        await house.crash()
    async with open_house(clock=clock) as house:
        reader = await house.client("r", clean_start=False, receive_maximum=65_535)
        received = set()
        for _ in range(1_500):
            packet = await reader.get(Publish)
            received.add(packet.payload)
            reader.say(Puback(packet.packet_id))
        assert len(received) == 1_500
        await reader.nothing()


async def test_suback_comes_before_the_retained_messages_of_a_lasting_session(house: House) -> None:
    house.broker.send("t", b"kept", qos=1, retain=True)
    reader = await house.lasting("r")
    async with held_commits(house.broker.db):
        reader.say(Subscribe(1, (Subscription("t", 1),)))
        await reader.nothing()
    await reader.get(Suback)
    assert (await reader.get(Publish)).payload == b"kept"


async def test_retained_messages_survive_with_all_they_carry(open_house: OpenHouse) -> None:
    properties = MessageProperties(
        content_type="text/plain",
        response_topic="answer",
        correlation_data=b"\x00\x01",
        user_properties=(("a", "1"), ("a", "2")),
        message_expiry=100,
    )
    long = "long/" + "é" * 20_000
    async with open_house() as house:
        clock = house.clock
        writer = await house.client("w")
        for topic in ("t", long):
            writer.publish(topic, b"kept", 1, retain=True, properties=properties)
            await writer.get(Puback)
        writer.publish("cleared", b"x", 1, retain=True)
        writer.publish("cleared", b"", 1, retain=True)
        await writer.get_all(Puback, 2)
        house.broker.send("$SYS/broker/version", b"1", qos=0, retain=True)
    clock.advance(40)
    async with open_house(clock=clock) as house:
        assert sorted(kept.topic for kept in house.broker.retained()) == sorted(["t", long])
        assert list(house.broker.retained("$SYS/#")) == []
        reader = await house.client("r")
        await reader.subscribe("t")
        found = (await reader.get(Publish)).properties
        assert found is not None
        assert found.message_expiry == 60
        assert found.user_properties == properties.user_properties
        clock.advance(60)
        assert await house.broker.sweep() == 2
        assert house.broker.retained_count == 0


async def test_there_is_a_cap_on_what_is_retained(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(retained_count=2)) as house:
        writer = await house.client("w")
        for topic in ("a", "b", "c", "a"):
            writer.publish(topic, b"x", 1, retain=True)
        reasons = [packet.reason for packet in await writer.get_all(Puback, 4)]
        assert reasons == [0x10, 0x10, Reason.QUOTA_EXCEEDED, 0x10]
    async with open_house(settings=Settings(retained_bytes=1_000)) as house:
        writer = await house.client("w")
        writer.publish("c", bytes(2_000), 1, retain=True)
        assert (await writer.get(Puback)).reason == Reason.QUOTA_EXCEEDED


async def test_an_operator_clears_a_retained_message(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await house.broker.publish("t", b"x", retain=True)
        assert await house.broker.clear_retained("t")
        assert not await house.broker.clear_retained("t")
    async with open_house() as house:
        assert house.broker.retained_count == 0
