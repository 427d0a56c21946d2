"""Messages between clients that are connected: who gets them, at which QoS, in which bytes."""

from __future__ import annotations

from holdfast.broker.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel, Reason
from tests.broker.speaking import House


async def test_a_message_reaches_its_subscribers_and_nobody_else(house: House) -> None:
    reader, other, writer = await house.client("r"), await house.client("o"), await house.client("w")
    await reader.subscribe("a/+")
    await other.subscribe("b/#")
    writer.publish("a/b", b"hello")
    assert await reader.get(Publish) == Publish("a/b", b"hello")
    await other.nothing()
    await writer.nothing()


async def test_qos_1_is_delivered_and_acknowledged_both_ways(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    await reader.subscribe("t", 1)
    writer.publish("t", b"1", 1)
    assert await writer.get(Puback) == Puback(1)
    assert await reader.get(Publish) == Publish("t", b"1", 1, packet_id=1)
    reader.say(Puback(1))
    writer.publish("t", b"2", 1)
    assert (await reader.get(Publish)).packet_id == 2
    assert house.broker.queued_count == 1


async def test_qos_2_is_delivered_once_with_its_whole_handshake(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    await reader.subscribe("t", 2)
    writer.publish("t", b"1", 2)
    assert await writer.get(Pubrec) == Pubrec(1)
    writer.say(Publish("t", b"1", 2, dup=True, packet_id=1))
    assert await writer.get(Pubrec) == Pubrec(1)
    writer.say(Pubrel(1))
    assert await writer.get(Pubcomp) == Pubcomp(1)
    assert await reader.get(Publish) == Publish("t", b"1", 2, packet_id=1)
    reader.say(Pubrec(1))
    assert await reader.get(Pubrel) == Pubrel(1)
    reader.say(Pubcomp(1))
    await reader.nothing()
    assert house.broker.queued_count == 0


async def test_a_message_goes_out_at_the_lower_of_both_qos(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    for granted in range(3):
        await reader.subscribe(f"granted/{granted}", granted)
        for published in range(3):
            writer.publish(f"granted/{granted}", b"", published)
            if published == 1:
                await writer.get(Puback)
            if published == 2:
                packet_id = (await writer.get(Pubrec)).packet_id
                writer.say(Pubrel(packet_id))
                await writer.get(Pubcomp)
            assert (await reader.get(Publish)).qos == min(granted, published)


async def test_a_publish_that_nobody_gets_is_acknowledged_with_0x10_in_5_0_alone(house: House) -> None:
    writer, old = await house.client("w"), await house.client("old", 4)
    writer.publish("t", b"", 1)
    assert await writer.get(Puback) == Puback(1, Reason.NO_MATCHING_SUBSCRIBERS)
    writer.publish("t", b"", 2)
    assert await writer.get(Pubrec) == Pubrec(2, Reason.NO_MATCHING_SUBSCRIBERS)
    old.publish("t", b"", 1)
    assert await old.get(Puback) == Puback(1)
