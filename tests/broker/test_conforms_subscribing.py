"""SUBSCRIBE, UNSUBSCRIBE and what they let through (3.8 to 3.11, 4.7, 4.8.2)."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import (
    V5,
    V311,
    Disconnect,
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
from tests.broker.conftest import Running, Start, kept


async def test_each_filter_of_a_subscribe_is_answered_in_order_and_with_its_identifier(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version)
    wanted = (Subscription("a", 2), Subscription("b", 0), Subscription("c/+", 1), Subscription("#", 2))
    await client.send(Subscribe(77, wanted))
    await client.expect_a(Suback, packet_id=77, reasons=(2, 0, 1, 2))
    await client.quiet()


async def test_many_filters_in_one_packet_are_as_many_subscriptions(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed(*(f"many/{n}" for n in range(500)), qos=1)
    for number in (0, 250, 499):
        await client.publish(f"many/{number}", b"1", 1)
        await client.receive(f"many/{number}", b"1", 1)
    await client.quiet()


async def test_subscribe_and_unsubscribe_are_answered_before_what_follows_them(
    broker: Running, version: int
) -> None:
    """What is published behind a SUBSCRIBE comes, what is published behind an UNSUBSCRIBE does not."""
    client = await broker.client("s", version)
    await client.send(
        Subscribe(1, (Subscription("t"),)),
        Publish("t", b"in"),
        Unsubscribe(2, ("t",)),
        Publish("t", b"out"),
    )
    await client.answer(Suback, packet_id=1)
    await client.answer(Unsuback, packet_id=2)
    await client.expect_message("t", b"in")
    await client.quiet()


async def test_the_same_filter_again_replaces_the_subscription(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed("t/+", qos=2)
    await client.subscribed("t/+", qos=0)
    await client.publish("t/1", b"1", 2)
    await client.receive("t/1", b"1", 0)
    await client.quiet()


async def test_the_same_filter_again_brings_the_retained_messages_again(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version)
    await client.publish("t/1", b"kept", 1, retain=True)
    for _ in range(2):
        await client.subscribed("t/+", qos=1)
        await client.receive("t/1", b"kept", 1, retain=True)
        await client.quiet()


@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
async def test_a_message_comes_at_the_lower_qos(
    broker: Running, version: int, published: int, granted: int
) -> None:
    client = await broker.client("s", version)
    await client.subscribed("t", qos=granted)
    await client.publish("t", b"1", published)
    message = await client.receive("t", b"1", min(published, granted))
    assert not message.dup
    await client.quiet()


async def test_a_message_that_matches_twice_comes_once_at_the_highest_qos(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version)
    await client.subscribed(Subscription("a/#", 0), Subscription("a/+", 2), Subscription("+/b", 1))
    await client.publish("a/b", b"1", 2)
    await client.receive("a/b", b"1", 2)
    await client.quiet()


async def test_a_message_that_matches_twice_has_all_the_identifiers(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.subscribed("a/#", qos=0, identifier=3)
    await client.subscribed("a/+", qos=2, identifier=268_435_455)
    await client.subscribed("+/b", qos=1)
    await client.publish("a/b", b"1", 1)
    message = await client.receive("a/b", b"1", 1)
    assert sorted(message.subscription_ids) == [3, 268_435_455]
    await client.publish("x/b", b"1", 1)
    assert (await client.receive("x/b", b"1", 1)).subscription_ids == ()


async def test_subscribing_again_replaces_the_identifier(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.subscribed("a", identifier=3)
    await client.subscribed("a", identifier=4)
    await client.publish("a", b"1")
    assert (await client.receive("a", b"1")).subscription_ids == (4,)
    await client.subscribed("a")
    await client.publish("a", b"2")
    assert (await client.receive("a", b"2")).subscription_ids == ()


async def test_an_identifier_outlives_the_connection(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("a", qos=1, identifier=9)
    await client.leave()
    other = await broker.client("other", V5)
    await other.publish("a", b"1", 1)
    client = await broker.client("s", V5, present=True, **kept(V5))
    assert (await client.receive("a", b"1", 1)).subscription_ids == (9,)


async def test_no_local_keeps_a_message_from_its_own_client_alone(broker: Running) -> None:
    client = await broker.client("s", V5)
    other = await broker.client("other", V5)
    await client.subscribed("t", qos=1, no_local=True)
    await other.subscribed("t", qos=1)
    await client.publish("t", b"mine", 1)
    await other.receive("t", b"mine", 1)
    await client.quiet()
    await other.publish("t", b"others", 1)
    await client.receive("t", b"others", 1)


async def test_no_local_means_the_client_id_not_the_connection(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=1, no_local=True)
    await client.leave()
    client = await broker.client("s", V5, present=True, **kept(V5))
    await client.publish("t", b"mine", 1)
    await client.quiet()


# -- topics and filters


@pytest.mark.parametrize(
    ("topic_filter", "topic", "matches"),
    [
        ("a", "A", False),
        ("a", "/a", False),
        ("/a", "/a", True),
        ("a", "a/", False),
        ("a/+", "a/", True),
        ("+", "/", False),
        ("+/+", "/", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("#", "a/b", True),
        ("+/b/#", "a/b", True),
        ("a b", "a b", True),
        ("ä/+", "ä/ö", True),
        ("e\u0301", "\u00e9", False),
        ("\ufeffa", "a", False),
        ("a//b", "a//b", True),
        ("a//b", "a/b", False),
        ("a/+/b", "a//b", True),
    ],
)
async def test_filters_match_as_the_standard_says(
    broker: Running, version: int, topic_filter: str, topic: str, matches: bool
) -> None:
    client = await broker.client("s", version)
    await client.subscribed(topic_filter, qos=1)
    await client.publish(topic, b"1", 1)
    if matches:
        await client.receive(topic, b"1", 1)
    await client.quiet()


async def test_a_leading_wildcard_does_not_see_dollar_topics(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.publish("$private/x", b"kept", 1, retain=True)
    await client.subscribed("#", "+/x", qos=1)
    await client.publish("$private/x", b"1", 1)
    await client.quiet()


async def test_a_filter_that_names_a_dollar_topic_sees_it(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed("$private/#", qos=1)
    await client.publish("$private/x", b"1", 1)
    await client.receive("$private/x", b"1", 1)


@pytest.mark.parametrize(
    "topic_filter", ["a#", "a/#/b", "a+", "+a/b", "", "$share//a", "$share/g", "$share/+/a"]
)
async def test_a_bad_filter_ends_the_connection(broker: Running, topic_filter: str) -> None:
    client = await broker.client("s", V5)
    await client.send(Subscribe(1, (Subscription("good"), Subscription(topic_filter))))
    said = await client.closed()
    assert isinstance(said, Disconnect)
    assert said.reason in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR, Reason.TOPIC_FILTER_INVALID)


# -- unsubscribing


async def test_each_filter_of_an_unsubscribe_is_answered_also_when_nothing_was_there(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version)
    await client.subscribed("a", "b/+")
    await client.send(Unsubscribe(99, ("a", "nothing", "b/+", "a")))
    answer = await client.expect_a(Unsuback, packet_id=99)
    if version == V5:
        none = Reason.NO_SUBSCRIPTION_EXISTED
        assert answer.reasons == (0, none, 0, none)
    for topic in ("a", "b/c"):
        await client.publish(topic, b"1")
    await client.quiet()


async def test_a_filter_is_taken_back_character_by_character(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed("a/b", qos=1)
    await client.unsubscribe("a/+", "a/#", "A/b", "a/b/", "/a/b")
    await client.publish("a/b", b"1", 1)
    await client.receive("a/b", b"1", 1)


async def test_unsubscribing_outlives_the_connection(broker: Running, version: int) -> None:
    client = await broker.client("s", version, **kept(version))
    await client.subscribed("a", "b", qos=1)
    await client.unsubscribe("a")
    await client.leave()
    other = await broker.client("other", version)
    await other.publish("a", b"1", 1)
    await other.publish("b", b"2", 1)
    client = await broker.client("s", version, present=True, **kept(version))
    await client.receive("b", b"2", 1)
    await client.quiet()


async def test_what_was_begun_before_an_unsubscribe_is_completed(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    await client.subscribed("a", qos=2)
    await client.publish("a", b"1", 1)
    await client.publish("a", b"2", 2)
    first = await client.expect_message("a", b"1", 1)
    second = await client.expect_message("a", b"2", 2)
    await client.unsubscribe("a")
    await client.acknowledge(first)
    await client.acknowledge(second)
    await client.quiet()


async def test_what_was_queued_before_an_unsubscribe_may_still_come_and_nothing_new(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version, **kept(version))
    await client.subscribed("a", qos=1)
    await client.publish("a", b"before", 1)
    begun = await client.expect_message("a", b"before", 1)
    client.drop()
    client = await broker.client("s", version, present=True, **kept(version))
    again = await client.expect_message("a", b"before", 1, dup=True, packet_id=begun.packet_id)
    await client.unsubscribe("a")
    await client.publish("a", b"after", 1)
    await client.acknowledge(again)
    await client.quiet()


# -- shared subscriptions (5.0)


async def test_a_shared_message_goes_to_one_member_at_its_own_granted_qos(broker: Running) -> None:
    publisher = await broker.client("p", V5)
    low, high = await broker.client("low", V5), await broker.client("high", V5)
    await low.subscribed("$share/g/t", qos=0)
    await high.subscribed("$share/g/t", qos=2)
    for number in range(10):
        await publisher.publish("t", b"%d" % number, 2)
    got: list[Publish] = []
    for client, qos in ((low, 0), (high, 2)):
        for _ in range(5):
            message = await client.expect_a(Publish, topic="t", qos=qos)
            await client.acknowledge(message)
            got.append(message)
        await client.quiet()
    assert sorted(int(message.payload) for message in got) == list(range(10))


async def test_two_groups_and_a_plain_subscription_each_get_their_copy(broker: Running) -> None:
    one, two, plain = [await broker.client(name, V5) for name in ("one", "two", "plain")]
    await one.subscribed("$share/a/t/+", qos=1)
    await two.subscribed("$share/b/t/#", qos=1)
    await plain.subscribed("t/1", qos=1)
    await plain.publish("t/1", b"1", 1)
    for client in (one, two, plain):
        await client.receive("t/1", b"1", 1)
        await client.quiet()


async def test_a_shared_subscription_gets_no_retained_messages(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.publish("t", b"kept", 1, retain=True)
    await client.subscribed("$share/g/t", qos=1)
    await client.quiet()


async def test_a_member_that_unsubscribes_gets_no_more(broker: Running) -> None:
    one, two = await broker.client("one", V5), await broker.client("two", V5)
    for client in (one, two):
        await client.subscribed("$share/g/t", qos=1)
    assert await one.unsubscribe("$share/g/t") == (0,)
    for number in range(4):
        await two.publish("t", b"%d" % number, 1)
        await two.receive("t", b"%d" % number, 1)
    await one.quiet()


async def test_qos_1_unacknowledged_by_a_member_that_goes_away_goes_to_another(broker: Running) -> None:
    one = await broker.client("one", V5)
    await one.subscribed("$share/g/t", qos=1)
    publisher = await broker.client("p", V5)
    await publisher.publish("t", b"1", 1)
    await one.expect_message("t", b"1", 1)
    two = await broker.client("two", V5)
    await two.subscribed("$share/g/t", qos=1)
    await one.leave()
    await two.receive("t", b"1", 1)
    await two.quiet()


async def test_qos_2_begun_with_a_member_is_completed_with_it(broker: Running) -> None:
    one = await broker.client("one", V5, **kept(V5))
    await one.subscribed("$share/g/t", qos=2)
    publisher = await broker.client("p", V5)
    await publisher.publish("t", b"1", 2)
    begun = await one.expect_message("t", b"1", 2)
    two = await broker.client("two", V5)
    await two.subscribed("$share/g/t", qos=2)
    one.drop()
    one = await broker.client("one", V5, present=True, **kept(V5))
    again = await one.expect_message("t", b"1", 2, dup=True, packet_id=begun.packet_id)
    await one.acknowledge(again)
    await two.quiet()


async def test_qos_2_begun_with_a_member_whose_session_ends_goes_to_no_other(broker: Running) -> None:
    one = await broker.client("one", V5)
    await one.subscribed("$share/g/t", qos=2)
    publisher = await broker.client("p", V5)
    await publisher.publish("t", b"1", 2)
    await one.expect_message("t", b"1", 2)
    two = await broker.client("two", V5)
    await two.subscribed("$share/g/t", qos=2)
    await one.leave()
    await publisher.publish("t", b"2", 2)
    await two.receive("t", b"2", 2)
    await two.quiet()


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_message_that_a_member_refuses_goes_to_no_other(broker: Running, qos: int) -> None:
    one = await broker.client("one", V5)
    await one.subscribed("$share/g/t", qos=qos)
    publisher = await broker.client("p", V5)
    await publisher.publish("t", b"1", qos)
    message = await one.expect_message("t", b"1", qos)
    two = await broker.client("two", V5)
    await two.subscribed("$share/g/t", qos=qos)
    refusal = Puback if qos == 1 else Pubrec
    await one.send(refusal(message.packet_id, Reason.UNSPECIFIED))
    await one.quiet()
    await one.leave()
    await two.quiet()


async def test_a_shared_message_waits_for_a_persistent_member_when_all_are_away(broker: Running) -> None:
    one = await broker.client("one", V5, **kept(V5))
    await one.subscribed("$share/g/t", qos=1)
    await one.leave()
    publisher = await broker.client("p", V5)
    assert await publisher.publish("t", b"1", 1) == 0
    one = await broker.client("one", V5, present=True, **kept(V5))
    await one.receive("t", b"1", 1)


# -- refusals


async def test_a_filter_that_is_not_allowed_is_refused_and_the_others_are_granted(
    start: Start, version: int
) -> None:
    broker = await start(denied=("secret/#",))
    client = await broker.client("s", version)
    assert await client.subscribe("open", "secret/a", "secret/#", qos=1) == (
        1,
        *((Reason.NOT_AUTHORIZED if version == V5 else 0x80,) * 2),
    )
    other = await broker.client("other", version)
    await other.publish("secret/a", b"1", 1)
    await client.quiet()


async def test_reason_strings_come_only_to_who_wants_them(start: Start) -> None:
    """With Request Problem Information 0, `strictness` takes none on anything but PUBLISH, CONNACK, DISCONNECT."""
    broker = await start(denied=("secret/#",))
    client = await broker.client("s", V5, request_problem_information=False)
    assert await client.subscribe("secret/a") == (Reason.NOT_AUTHORIZED,)
    assert await client.publish("secret/a", b"1", 1) == Reason.NOT_AUTHORIZED
    assert await client.publish("secret/a", b"1", 2) == Reason.NOT_AUTHORIZED
    await client.unsubscribe("secret/a")


async def test_subscriptions_above_the_cap_are_refused(start: Start, version: int) -> None:
    broker = await start(max_subscriptions=2)
    client = await broker.client("s", version)
    full = Reason.QUOTA_EXCEEDED if version == V5 else 0x80
    assert await client.subscribe("a", "b", "c", qos=1) == (1, 1, full)
    assert await client.subscribe("a", qos=2) == (2,)
    await client.unsubscribe("a")
    assert await client.subscribe("c", qos=1) == (1,)


async def test_3_1_1_has_no_word_but_failure(start: Start) -> None:
    broker = await start(denied=("secret/#",))
    client = await broker.client("s", V311)
    await client.send(Subscribe(1, (Subscription("secret/a"),)))
    await client.expect_a(Suback, reasons=(0x80,))
