"""What a session keeps and for how long (3.1.2.11.2, 3.14.2.2.2, 4.1), and messages that expire (3.3.2.3.3)."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.broker.packets import (
    V5,
    V311,
    Disconnect,
    MessageProperties,
    Publish,
    Reason,
    Subscription,
)
from tests.broker.conftest import Running, Start, kept

SOON = 1
"""A second: the shortest interval that the standard knows."""


async def passed(seconds: float) -> None:
    """Time that the standard's own intervals need; nothing else waits like this."""
    await asyncio.sleep(seconds)


async def test_a_session_that_is_away_for_longer_than_its_expiry_is_gone(broker: Running) -> None:
    client = await broker.client("s", V5, clean=False, session_expiry=SOON)
    await client.subscribed("t", qos=1)
    await client.leave()
    await passed(SOON + 1)
    other = await broker.client("p", V5)
    await other.publish("t", b"1", 1)
    again = await broker.client("s", V5, present=False, **kept(V5))
    await again.quiet()


async def test_a_session_does_not_expire_while_its_client_is_there(broker: Running) -> None:
    client = await broker.client("s", V5, clean=False, session_expiry=SOON)
    await client.subscribed("t", qos=1)
    await passed(SOON + 1)
    await client.publish("t", b"1", 1)
    await client.receive("t", b"1", 1)
    client.drop()
    await broker.client("s", V5, present=True, **kept(V5))


async def test_the_interval_counts_anew_from_each_disconnect(broker: Running) -> None:
    for turn in range(3):
        client = await broker.client("s", V5, clean=False, session_expiry=2, present=turn > 0)
        client.drop()
        await passed(1)
    await broker.client("s", V5, present=True, **kept(V5))


async def test_the_largest_interval_never_ends(broker: Running) -> None:
    client = await broker.client("s", V5, clean=False, session_expiry=0xFFFF_FFFF)
    await client.leave()
    await broker.client("s", V5, present=True, **kept(V5))


async def test_3_1_1_sessions_end_after_the_setting(start: Start) -> None:
    broker = await start(session_expiry=SOON)
    client = await broker.client("s", V311, clean=False)
    await client.leave()
    client = await broker.client("s", V311, clean=False, present=True)
    await client.leave()
    await passed(SOON + 1)
    await broker.client("s", V311, clean=False, present=False)


async def test_3_1_1_a_session_lasts_while_its_client_is_there(start: Start) -> None:
    broker = await start(session_expiry=SOON)
    client = await broker.client("s", V311, clean=False)
    await client.subscribed("t", qos=1)
    await passed(SOON + 1)
    await client.publish("t", b"1", 1)
    await client.receive("t", b"1", 1)


async def test_disconnect_may_change_the_interval(broker: Running) -> None:
    client = await broker.client("longer", V5, clean=False, session_expiry=SOON)
    await client.leave(session_expiry=1_000)
    client = await broker.client("ended", V5, **kept(V5))
    await client.leave(session_expiry=0)
    await passed(SOON + 1)
    await broker.client("longer", V5, present=True, **kept(V5))
    await broker.client("ended", V5, present=False, **kept(V5))


async def test_disconnect_may_not_make_a_session_that_was_to_end(broker: Running) -> None:
    client = await broker.client("s", V5, clean=True, session_expiry=0)
    await client.send(Disconnect(session_expiry=100))
    said = await client.closed()
    assert said is None or (isinstance(said, Disconnect) and said.reason == Reason.PROTOCOL_ERROR)
    await broker.client("s", V5, present=False, **kept(V5))


async def test_a_clean_start_may_begin_a_session_that_lasts(broker: Running) -> None:
    """5.0: Clean Start and expiry are two things."""
    client = await broker.client("s", V5, clean=True, session_expiry=100, present=False)
    await client.subscribed("t", qos=1)
    client.drop()
    await broker.client("s", V5, present=True, **kept(V5))


async def test_qos_0_is_not_kept_for_a_session_that_is_away_and_the_rest_is(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version, **kept(version))
    await client.subscribed("t", qos=2)
    await client.leave()
    other = await broker.client("p", version)
    for qos in (1, 2):
        await other.publish("t", b"%d" % qos, qos)
    client = await broker.client("s", version, present=True, **kept(version))
    await client.receive("t", b"1", 1)
    await client.receive("t", b"2", 2)
    await client.quiet()


async def test_subscriptions_are_there_without_being_asked_for(broker: Running, version: int) -> None:
    client = await broker.client("s", version, **kept(version))
    await client.subscribed(Subscription("a", 0), Subscription("b/+", 1), Subscription("c/#", 2))
    client.drop()
    client = await broker.client("s", version, present=True, **kept(version))
    for topic, qos in (("a", 0), ("b/1", 1), ("c/1/2", 2)):
        await client.publish(topic, b"1", 2)
        await client.receive(topic, b"1", qos)
    await client.quiet()


# -- messages that expire


async def test_a_message_that_waited_says_how_long_it_has_left(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=1)
    await client.leave()
    other = await broker.client("p", V5)
    await other.publish("t", b"1", 1, properties=MessageProperties(message_expiry=100, content_type="x"))
    await passed(2)
    client = await broker.client("s", V5, present=True, **kept(V5))
    message = await client.receive("t", b"1", 1)
    assert message.properties is not None
    assert message.properties.message_expiry in range(90, 99)
    assert message.properties.content_type == "x"


async def test_a_message_whose_time_is_over_does_not_come(broker: Running, version: int) -> None:
    """The publisher is of 5.0, the subscriber of either."""
    client = await broker.client("s", version, **kept(version))
    await client.subscribed("t", qos=2)
    await client.leave()
    other = await broker.client("p", V5)
    soon = MessageProperties(message_expiry=1)
    for qos in (1, 2):
        await other.publish("t", b"old", qos, properties=soon)
    await other.publish("t", b"good", 1, properties=MessageProperties(message_expiry=100))
    await passed(2.1)
    client = await broker.client("s", version, present=True, **kept(version))
    await client.receive("t", b"good", 1)
    await client.quiet()


async def test_a_retained_message_counts_down_and_goes(broker: Running) -> None:
    other = await broker.client("p", V5)
    await other.publish("t/1", b"1", 1, retain=True, properties=MessageProperties(message_expiry=1))
    await other.publish("t/2", b"2", 1, retain=True, properties=MessageProperties(message_expiry=100))
    await passed(2.1)
    client = await broker.client("s", V5)
    await client.subscribed("t/#", qos=1)
    message = await client.receive("t/2", b"2", 1, retain=True)
    assert message.properties is not None
    assert message.properties.message_expiry in range(90, 99)
    await client.quiet()


async def test_a_message_sent_at_once_has_its_whole_time(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.subscribed("t", qos=1)
    await client.publish("t", b"1", 1, properties=MessageProperties(message_expiry=50))
    message = await client.receive("t", b"1", 1)
    assert message.properties is not None
    assert message.properties.message_expiry in (49, 50)


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_handshake_that_was_begun_goes_on_although_the_message_expired(
    broker: Running, qos: int
) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=qos)
    await client.publish("t", b"1", qos, properties=MessageProperties(message_expiry=1))
    message = await client.expect_message("t", b"1", qos)
    await passed(2.1)
    await client.acknowledge(message)
    await client.quiet()


async def test_qos_2_once_sent_does_not_expire(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=2)
    await client.publish("t", b"1", 2, properties=MessageProperties(message_expiry=1))
    first = await client.expect_message("t", b"1", 2)
    client.drop()
    await passed(2.1)
    client = await broker.client("s", V5, present=True, **kept(V5))
    again = await client.expect_a(Publish, topic="t", payload=b"1", dup=True, packet_id=first.packet_id)
    await client.acknowledge(again)
    await client.quiet()
