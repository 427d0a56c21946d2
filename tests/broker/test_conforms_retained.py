"""Retained messages (3.3.1.3): replaced, removed, replayed as each subscription asks."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import V5, V311, MessageProperties, Publish, Subscription
from tests.broker.conftest import Running, kept


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_the_newest_retained_message_greets_a_new_subscription_at_its_qos(
    broker: Running, version: int, qos: int
) -> None:
    publisher = await broker.client("p", version)
    await publisher.publish("t/a", b"old", 1, retain=True)
    await publisher.publish("t/a", b"new", qos, retain=True)
    client = await broker.client("s", version)
    await client.subscribed("t/+", qos=2)
    await client.receive("t/a", b"new", qos, retain=True)
    await client.quiet()


async def test_a_retained_message_comes_at_the_lower_qos(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.publish("t", b"1", 2, retain=True)
    await client.subscribed("t", qos=1)
    await client.receive("t", b"1", 1, retain=True)


async def test_an_established_subscription_sees_no_retain_flag(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed("t", qos=1)
    await client.publish("t", b"1", 1, retain=True)
    await client.receive("t", b"1", 1, retain=False)


async def test_an_empty_payload_removes_and_is_not_kept_itself(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed("t", qos=1)
    await client.publish("t", b"1", 1, retain=True)
    await client.receive("t", b"1", 1)
    await client.publish("t", b"", 1, retain=True)
    await client.receive("t", b"", 1)
    await client.subscribed("t", qos=1)
    await client.quiet()


async def test_without_the_flag_nothing_is_kept_replaced_or_removed(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.publish("t", b"kept", 1, retain=True)
    await client.publish("t", b"passing", 1)
    await client.publish("t", b"", 1)
    await client.publish("u", b"passing", 1)
    await client.subscribed("t", "u", qos=1)
    await client.receive("t", b"kept", 1, retain=True)
    await client.quiet()


async def test_a_retained_message_outlives_who_sent_it(broker: Running, version: int) -> None:
    publisher = await broker.client("p", version, clean=True)
    await publisher.publish("t", b"1", 1, retain=True)
    await publisher.leave()
    await (await broker.client("p", version, clean=True)).leave()
    client = await broker.client("s", version)
    await client.subscribed("t", qos=1)
    await client.receive("t", b"1", 1, retain=True)


async def test_each_filter_brings_what_it_matches(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    topics = [f"t/{a}/{b}" for a in range(5) for b in range(5)]
    for topic in topics:
        await client.publish(topic, topic.encode(), 1, retain=True)
    await client.publish("$private/t/1/1", b"hidden", 1, retain=True)
    for topic_filter, wanted in (
        ("t/+/3", [f"t/{a}/3" for a in range(5)]),
        ("t/2/#", [f"t/2/{b}" for b in range(5)]),
        ("t/1/1", ["t/1/1"]),
        ("#", topics),
        ("t/9/#", []),
    ):
        await client.subscribed(topic_filter, qos=0)
        got = [await client.expect_a(Publish, retain=True) for _ in wanted]
        assert sorted(message.topic for message in got) == sorted(wanted)
        assert all(message.payload == message.topic.encode() for message in got)
        await client.quiet()


# -- 5.0: how a subscription wants it


async def test_retain_handling_0_brings_them_each_time(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.publish("t", b"1", 1, retain=True)
    for _ in range(2):
        await client.subscribed(Subscription("t", 1, retain_handling=0))
        await client.receive("t", b"1", 1, retain=True)
    await client.quiet()


async def test_retain_handling_1_brings_them_to_a_new_subscription_only(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.publish("t", b"1", 1, retain=True)
    await client.subscribed(Subscription("t", 1, retain_handling=1))
    await client.receive("t", b"1", 1, retain=True)
    await client.subscribed(Subscription("t", 0, retain_handling=1))
    await client.quiet()
    await client.unsubscribe("t")
    await client.subscribed(Subscription("t", 1, retain_handling=1))
    await client.receive("t", b"1", 1, retain=True)


async def test_retain_handling_1_knows_a_subscription_from_before_the_connection(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=1)
    await client.publish("t", b"1", 1, retain=True)
    await client.receive("t", b"1", 1)
    await client.leave()
    client = await broker.client("s", V5, present=True, **kept(V5))
    await client.subscribed(Subscription("t", 1, retain_handling=1))
    await client.quiet()


async def test_retain_handling_2_brings_none(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.publish("t", b"1", 1, retain=True)
    await client.subscribed(Subscription("t", 1, retain_handling=2))
    await client.quiet()
    await client.publish("t", b"2", 1)
    await client.receive("t", b"2", 1)


async def test_retain_as_published_keeps_the_flag(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.subscribed(Subscription("t", 1, retain_as_published=True))
    await client.publish("t", b"1", 1, retain=True)
    await client.receive("t", b"1", 1, retain=True)
    await client.publish("t", b"2", 1)
    await client.receive("t", b"2", 1, retain=False)


async def test_retain_as_published_is_each_subscribers_own_wish(broker: Running) -> None:
    plain, keeping = await broker.client("plain", V5), await broker.client("keeping", V5)
    old = await broker.client("old", V311)
    await plain.subscribed("t", qos=1)
    await old.subscribed("t", qos=1)
    await keeping.subscribed(Subscription("t", 1, retain_as_published=True))
    await plain.publish("t", b"1", 1, retain=True)
    await plain.receive("t", b"1", 1, retain=False)
    await old.receive("t", b"1", 1, retain=False)
    await keeping.receive("t", b"1", 1, retain=True)


async def test_retain_as_published_outlives_the_connection(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed(Subscription("t", 1, retain_as_published=True))
    await client.leave()
    other = await broker.client("other", V5)
    await other.publish("t", b"1", 1, retain=True)
    client = await broker.client("s", V5, present=True, **kept(V5))
    await client.receive("t", b"1", 1, retain=True)


async def test_a_replayed_message_has_the_identifier_of_its_subscription(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.publish("t", b"1", 1, retain=True)
    await client.subscribed("t", qos=1, identifier=5)
    message = await client.receive("t", b"1", 1, retain=True)
    assert message.subscription_ids == (5,)


async def test_properties_are_kept_with_the_message(broker: Running) -> None:
    properties = MessageProperties(
        payload_format=1,
        content_type="text/plain",
        response_topic="answer",
        correlation_data=b"\0\1",
        user_properties=(("b", "1"), ("a", "2"), ("b", "1")),
    )
    client = await broker.client("s", V5)
    await client.publish("t", b"1", 1, retain=True, properties=properties)
    await client.subscribed("t", qos=1)
    await client.receive("t", b"1", 1, retain=True, properties=properties)
    old = await broker.client("old", V311)
    await old.subscribed("t", qos=1)
    await old.receive("t", b"1", 1, retain=True)
