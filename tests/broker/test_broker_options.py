"""What a client asks for with a subscription or a CONNECT: no-local, identifiers, aliases, sizes."""

from __future__ import annotations

from holdfast.broker.packets import (
    Disconnect,
    MessageProperties,
    Puback,
    Publish,
    Pubrec,
    Reason,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import House, settle


async def test_overlapping_subscriptions_deliver_once_at_the_highest_qos_with_all_identifiers(
    house: House,
) -> None:
    new, old, writer = await house.client("new"), await house.client("old", 4), await house.client("w")
    for reader in (new, old):
        await reader.subscribe("a/#", 0, identifier=3)
        await reader.subscribe("a/+", 1, identifier=9)
        await reader.subscribe("a/b", 0)
    writer.publish("a/b", b"x", 2)
    packet = await new.get(Publish)
    assert (packet.qos, packet.subscription_ids) == (1, (3, 9))
    await new.nothing()
    assert (await old.get(Publish)).qos == 1
    await old.nothing()


async def test_no_local_keeps_a_clients_own_messages_from_it(house: House) -> None:
    both, other = await house.client("b"), await house.client("o")
    await both.subscribe("t", 1, no_local=True)
    await both.subscribe("#", 0)
    both.publish("t", b"mine", 1)
    assert (await both.get(Publish)).qos == 0  # the other subscription is not no-local
    assert (await both.get(Puback)).reason == 0
    await both.unsubscribe("#")
    both.publish("t", b"mine", 1)
    assert (await both.get(Puback)).reason == Reason.NO_MATCHING_SUBSCRIBERS
    other.publish("t", b"theirs", 1)
    assert (await both.get(Publish)).payload == b"theirs"


async def test_a_subscription_replaces_the_one_with_the_same_filter(house: House) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 0, identifier=1)
    await reader.subscribe("t", 2, identifier=2)
    writer.publish("t", b"x", 1)
    packet = await reader.get(Publish)
    assert (packet.qos, packet.subscription_ids) == (1, (2,))
    (subscription,) = house.broker.subscriptions("r")
    assert subscription.qos == 2


async def test_unsubscribing_says_for_each_filter_whether_there_was_one(house: House) -> None:
    reader = await house.client("r")
    await reader.subscribe("a")
    reader.say(Unsubscribe(7, ("a", "b")))
    assert await reader.get(Unsuback) == Unsuback(7, (0, Reason.NO_SUBSCRIPTION_EXISTED))


async def test_a_message_keeps_its_properties(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    await reader.subscribe("t")
    properties = MessageProperties(
        payload_format=1,
        message_expiry=30,
        content_type="text/plain",
        response_topic="answer/here",
        correlation_data=b"\x00\xff",
        user_properties=(("k", "1"), ("k", "2"), ("a", "")),
    )
    writer.publish("t", "grüß".encode(), properties=properties)
    assert (await reader.get(Publish)).properties == properties


async def test_a_payload_that_is_not_what_it_says_is_refused(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    await reader.subscribe("t")
    text = MessageProperties(payload_format=1)
    writer.publish("t", b"\xff", 0, properties=text)
    writer.publish("t", b"\xff", 1, properties=text)
    writer.publish("t", b"\xff", 2, properties=text)
    assert (await writer.get(Puback)).reason == Reason.PAYLOAD_FORMAT_INVALID
    assert (await writer.get(Pubrec)).reason == Reason.PAYLOAD_FORMAT_INVALID
    await reader.nothing()
    writer.say(Publish("t", b"ok", 2, packet_id=2, properties=text))  # its id is free again
    assert (await writer.get(Pubrec)).reason == 0


async def test_a_client_may_use_topic_aliases_up_to_our_maximum(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(topic_alias_max=2)) as house:
        reader, writer = await house.client("r"), house.speaker()
        assert (await writer.connect("w")).topic_alias_maximum == 2
        await reader.subscribe("#")
        writer.publish("a", b"1", topic_alias=1)
        writer.publish("", b"2", topic_alias=1)
        writer.publish("b", b"3", topic_alias=1)
        writer.publish("", b"4", topic_alias=1)
        writer.publish("", b"5", 1, topic_alias=1)
        found = [(p.topic, p.payload) for p in await reader.get_all(Publish, 5)]
        assert found == [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"4"), ("b", b"5")]
        await writer.get(Puback)
        writer.publish("", b"6", topic_alias=2)
        assert (await writer.get(Disconnect)).reason == Reason.PROTOCOL_ERROR
        other = await house.client("o")
        other.publish("a", topic_alias=3)
        assert (await other.get(Disconnect)).reason == Reason.TOPIC_ALIAS_INVALID


async def test_aliases_are_used_towards_a_client_that_allows_them(house: House) -> None:
    reader, writer = await house.client("r", topic_alias_maximum=2), await house.client("w", 4)
    await reader.subscribe("#", 1)
    for topic in ("a", "a", "b", "c", "b"):
        writer.publish(topic, b"", 0)
        writer.publish(topic, b"", 1)
    found = [(p.topic, p.topic_alias) for p in await reader.get_all(Publish, 10)]
    assert sorted(found) == sorted(
        [("a", 1), ("", 1), ("", 1), ("", 1), ("b", 2), ("", 2), ("c", 0), ("c", 0), ("", 2), ("", 2)]
    )


async def test_a_message_too_large_for_one_client_is_dropped_for_that_one_alone(house: House) -> None:
    small, large = await house.lasting("s", maximum_packet_size=100), await house.client("l")
    writer = await house.client("w")
    for reader in (small, large):
        await reader.subscribe("t", 1)
    for qos in (0, 1):
        writer.publish("t", bytes(200), qos)
        assert len((await large.get(Publish)).payload) == 200
    await writer.get(Puback)
    await small.nothing()
    writer.publish("t", b"fits", 1)
    assert (await small.get(Publish)).payload == b"fits"
    assert house.broker.counters.drops["too_large"] == 2
    assert house.broker.session("s").queued_bytes < 100  # type: ignore[union-attr]


async def test_a_packet_that_is_too_large_for_us_ends_the_connection(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(max_packet_size=1_000, max_payload=500)) as house:
        writer = house.speaker()
        assert (await writer.connect("w")).maximum_packet_size == 1_000
        writer.publish("t", bytes(600), 1)
        assert (await writer.get(Puback)).reason == Reason.IMPLEMENTATION_SPECIFIC
        writer.write(b"\x30\xff\xff\x7f")
        assert (await writer.get(Disconnect)).reason == Reason.PACKET_TOO_LARGE


async def test_what_is_switched_off_is_said_and_refused(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(max_qos=1, retain=False)) as house:
        writer = house.speaker()
        answer = await writer.connect("w")
        assert (answer.maximum_qos, answer.retain_available) == (1, False)
        assert (await writer.subscribe("t", 2)).reasons == (1,)
        writer.publish("t", b"", 2)
        assert (await writer.get(Disconnect)).reason == Reason.QOS_NOT_SUPPORTED
        writer = await house.client("w")
        writer.publish("t", b"x", retain=True)
        assert (await writer.get(Disconnect)).reason == Reason.RETAIN_NOT_SUPPORTED
        old = await house.client("old", 4)
        old.publish("t", b"x", retain=True)
        await old.closed()


async def test_response_information_is_given_to_who_asks_for_it(house: House) -> None:
    asking = await house.speaker().connect("c", request_response_information=True)
    assert asking.response_information == "response/c"
    assert (await house.speaker().connect("d")).response_information is None


async def test_a_server_keep_alive_is_told_to_5_0_and_leaves_3_1_1_alone(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(server_keep_alive=10)) as house:
        new, old = house.speaker(), await house.client("old", 4, keep_alive=100)
        assert (await new.connect("new", keep_alive=100)).server_keep_alive == 10
        house.tick()
        house.tick(15.5)
        assert (await new.get(Disconnect)).reason == Reason.KEEP_ALIVE_TIMEOUT
        assert not old.wire.is_closed


async def test_dollar_topics_are_not_for_wildcards_and_sys_is_nobodys_to_publish(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    reader.say(Subscribe(1, (Subscription("#"), Subscription("+/broker/x"), Subscription("$SYS/#"))))
    await reader.get(Suback)
    house.broker.send("$SYS/broker/x", b"1", qos=0, retain=True)
    assert (await reader.get(Publish)).payload == b"1"
    await reader.nothing()
    writer.publish("$SYS/broker/x", b"2", 1)
    assert (await writer.get(Puback)).reason == Reason.NOT_AUTHORIZED
    await settle()
    await reader.nothing()
