"""Wills (3.1.2.5, 3.1.3.2): published when a connection ends badly, when the delay is over, and else never."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import (
    V5,
    V311,
    MessageProperties,
    Reason,
    Subscription,
    Will,
)
from tests.broker.client import Client
from tests.broker.conftest import Running, Start, kept

WILL = Will(topic="will/of", payload=b"gone", qos=1)


async def watching(broker: Running, version: int = V5, qos: int = 2) -> Client:
    client = await broker.client("watcher", version)
    await client.subscribed("will/#", qos=qos)
    return client


async def test_a_connection_that_breaks_publishes_its_will(broker: Running, version: int) -> None:
    watcher = await watching(broker, version)
    client = await broker.client("w", version, will=WILL)
    client.drop()
    await watcher.receive("will/of", b"gone", 1)
    await watcher.quiet()


async def test_a_connection_that_ends_well_does_not(broker: Running, version: int) -> None:
    watcher = await watching(broker, version)
    client = await broker.client("w", version, will=WILL)
    await client.leave()
    await watcher.quiet()


async def test_without_a_will_nothing_is_published(broker: Running, version: int) -> None:
    """Also where an earlier connection of the same client had one."""
    watcher = await watching(broker, version)
    client = await broker.client("w", version, will=WILL, **kept(version))
    await client.leave()
    client = await broker.client("w", version, **kept(version))
    client.drop()
    await broker.client("w", version, **kept(version))
    await watcher.quiet()


async def test_a_will_is_published_once(broker: Running, version: int) -> None:
    watcher = await watching(broker, version)
    client = await broker.client("w", version, will=WILL, **kept(version))
    client.drop()
    await watcher.receive("will/of", b"gone", 1)
    again = await broker.client("w", version, **kept(version))
    again.drop()
    await broker.client("w", version, clean=True)
    await watcher.quiet()


async def test_leaving_with_the_will_publishes_it(broker: Running) -> None:
    watcher = await watching(broker)
    client = await broker.client("w", V5, will=WILL)
    await client.leave(Reason.DISCONNECT_WITH_WILL)
    await watcher.receive("will/of", b"gone", 1)


@pytest.mark.parametrize("reason", [0x80, 0x81, 0x93, 0x98])
async def test_leaving_for_a_bad_reason_publishes_it(broker: Running, reason: int) -> None:
    watcher = await watching(broker)
    client = await broker.client("w", V5, will=WILL)
    await client.leave(reason)
    await watcher.receive("will/of", b"gone", 1)


async def test_a_protocol_error_publishes_it(broker: Running, version: int) -> None:
    watcher = await watching(broker, version)
    client = await broker.client("w", version, will=WILL)
    await client.send_bytes(b"\x00\x00")
    await client.closed()
    await watcher.receive("will/of", b"gone", 1)


async def test_silence_publishes_it(broker: Running, version: int) -> None:
    watcher = await watching(broker, version)
    await broker.client("w", version, will=WILL, keep_alive=1)
    await watcher.receive("will/of", b"gone", 1)


async def test_a_takeover_publishes_it(broker: Running, version: int) -> None:
    """Without a delay: the connection was closed without DISCONNECT (3.1.4-3)."""
    watcher = await watching(broker, version)
    old = await broker.client("w", version, will=WILL, **kept(version))
    await broker.client("w", version, **kept(version))
    await old.expect_end(Reason.SESSION_TAKEN_OVER)
    await watcher.receive("will/of", b"gone", 1)
    await watcher.quiet()


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("retain", [False, True])
async def test_a_will_has_its_qos_and_is_retained_as_it_says(
    broker: Running, version: int, qos: int, retain: bool
) -> None:
    watcher = await watching(broker, version)
    client = await broker.client(
        "w", version, will=Will(topic="will/x", payload=b"w", qos=qos, retain=retain)
    )
    client.drop()
    await watcher.receive("will/x", b"w", qos)
    late = await broker.client("late", version)
    await late.subscribed("will/#", qos=2)
    if retain:
        await late.receive("will/x", b"w", qos, retain=True)
    await late.quiet()


async def test_an_empty_retained_will_removes_what_was_retained(broker: Running, version: int) -> None:
    watcher = await watching(broker, version)
    await watcher.publish("will/x", b"kept", 1, retain=True)
    await watcher.receive("will/x", b"kept", 1)
    client = await broker.client("w", version, will=Will(topic="will/x", retain=True))
    client.drop()
    await watcher.receive("will/x", b"", 0)
    late = await broker.client("late", version)
    await late.subscribed("will/#")
    await late.quiet()


async def test_properties_of_a_will_arrive_in_their_order(broker: Running) -> None:
    properties = MessageProperties(
        payload_format=1,
        content_type="text",
        response_topic="r",
        correlation_data=b"c",
        user_properties=(("b", "1"), ("a", "2"), ("b", "1")),
    )
    watcher = await watching(broker)
    client = await broker.client(
        "w", V5, will=Will(topic="will/x", payload=b"w", qos=1, properties=properties)
    )
    client.drop()
    await watcher.receive("will/x", b"w", 1, properties=properties)


# -- the delay of 5.0


async def test_a_will_with_a_delay_waits_for_it(broker: Running) -> None:
    watcher = await watching(broker)
    will = Will(topic="will/x", payload=b"late", delay=1)
    client = await broker.client("w", V5, will=will, **kept(V5))
    client.drop()
    await watcher.publish("will/now", b"first", 1)
    await watcher.receive("will/now", b"first", 1)
    await watcher.receive("will/x", b"late", 0)


async def test_who_is_back_within_the_delay_has_no_will(broker: Running) -> None:
    watcher = await watching(broker)
    will = Will(topic="will/x", payload=b"late", delay=1)
    client = await broker.client("w", V5, will=will, **kept(V5))
    client.drop()
    back = await broker.client("w", V5, present=True, **kept(V5))
    other = await broker.client("later", V5, will=Will(topic="will/later", delay=2), **kept(V5))
    other.drop()
    await watcher.receive("will/later", b"", 0)  # a second after the first would have come
    await back.quiet()


async def test_a_takeover_within_the_delay_has_no_will(broker: Running) -> None:
    watcher = await watching(broker)
    will = Will(topic="will/x", payload=b"late", delay=1)
    old = await broker.client("w", V5, will=will, **kept(V5))
    await broker.client("w", V5, present=True, **kept(V5))
    await old.expect_end(Reason.SESSION_TAKEN_OVER)
    other = await broker.client("later", V5, will=Will(topic="will/later", delay=2), **kept(V5))
    other.drop()
    await watcher.receive("will/later", b"", 0)


async def test_a_session_that_ends_before_the_delay_publishes_at_its_end(broker: Running) -> None:
    watcher = await watching(broker)
    client = await broker.client(
        "w", V5, clean=False, session_expiry=0, will=Will(topic="will/x", payload=b"now", delay=1_000)
    )
    client.drop()
    await watcher.receive("will/x", b"now", 0)


async def test_a_clean_start_ends_the_session_and_publishes_the_will_that_waited(broker: Running) -> None:
    watcher = await watching(broker)
    will = Will(topic="will/x", payload=b"now", delay=1_000)
    client = await broker.client("w", V5, will=will, **kept(V5))
    client.drop()
    await broker.client("w", V5, clean=True)
    await watcher.receive("will/x", b"now", 0)
    await watcher.quiet()


async def test_a_session_that_expires_first_publishes_the_will_that_waited(broker: Running) -> None:
    watcher = await watching(broker)
    will = Will(topic="will/x", payload=b"end", delay=1_000)
    client = await broker.client("w", V5, clean=False, session_expiry=1, will=will)
    client.drop()
    await watcher.receive("will/x", b"end", 0)


async def test_the_expiry_of_a_will_counts_from_when_it_is_published(broker: Running) -> None:
    watcher = await watching(broker)
    will = Will(
        topic="will/x", payload=b"w", qos=1, delay=1, properties=MessageProperties(message_expiry=100)
    )
    client = await broker.client("w", V5, will=will, **kept(V5))
    client.drop()
    message = await watcher.receive("will/x", b"w", 1)
    assert message.properties is not None
    assert message.properties.message_expiry in (99, 100)


# -- who may leave one


async def test_a_will_to_a_topic_that_is_denied_goes_nowhere(start: Start, version: int) -> None:
    """Whether CONNECT is refused for it or not."""
    broker = await start(denied=("secret/#",))
    watcher = await broker.client("watcher", version)
    await watcher.subscribed("#")
    client = await broker.open(version)
    connack = await client.connect("w", will=Will(topic="secret/x", retain=True, payload=b"w"))
    assert connack.reason in (0, Reason.NOT_AUTHORIZED)
    client.drop()
    await broker.client("w", version)
    await watcher.quiet()


async def test_the_watcher_may_ask_for_no_local_and_the_retain_flag(broker: Running) -> None:
    client = await broker.client("watcher", V5)
    await client.subscribed(Subscription("will/x", 1, retain_as_published=True))
    other = await broker.client("w", V311, will=Will(topic="will/x", payload=b"w", retain=True))
    other.drop()
    await client.receive("will/x", b"w", 0, retain=True)
