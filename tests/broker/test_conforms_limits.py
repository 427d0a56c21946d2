"""What either side may ask of the other: receive maximum, packet size, topic aliases (3.1.2.11, 3.3.2.3, 4.9)."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import (
    V5,
    V311,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    Subscription,
    encode,
)
from tests.broker.conftest import Running, Start, kept

# -- receive maximum: ours to the client


@pytest.mark.parametrize("maximum", [1, 3])
@pytest.mark.parametrize("qos", [1, 2])
async def test_no_more_messages_are_under_way_than_the_client_takes(
    broker: Running, maximum: int, qos: int
) -> None:
    client = await broker.client("s", V5, receive_maximum=maximum)
    other = await broker.client("p", V5)
    await client.subscribed("t", qos=qos)
    for number in range(10):
        await other.publish("t", b"%d" % number, qos)
    waiting = [await client.expect_message("t", b"%d" % n, qos) for n in range(maximum)]
    for number in range(maximum, 10):
        await client.quiet()
        await client.acknowledge(waiting.pop(0))
        waiting.append(await client.expect_message("t", b"%d" % number, qos))
    for message in waiting:
        await client.acknowledge(message)
    await client.quiet()


async def test_everything_else_goes_on_while_no_message_may(broker: Running) -> None:
    client = await broker.client("s", V5, receive_maximum=1)
    other = await broker.client("p", V5)
    await client.subscribed(Subscription("t", 2), Subscription("q0", 0))
    await other.publish("t", b"1", 2)
    await other.publish("t", b"2", 2)
    first = await client.expect_message("t", b"1", 2)
    await client.send(Pingreq())
    await client.expect(Pingresp())
    await other.publish("q0", b"quick", 0)
    await client.receive("q0", b"quick", 0)
    await client.send(Subscribe(5, (Subscription("more"),)))
    await client.expect_a(Suback, packet_id=5)
    await client.publish("q0", b"own", 1)
    await client.receive("q0", b"own", 0)
    await client.send(Pubrec(first.packet_id))
    await client.answer(Pubrel, packet_id=first.packet_id)
    await client.quiet()  # PUBREC alone frees nothing
    await client.send(Pubcomp(first.packet_id))
    await client.receive("t", b"2", 2)


async def test_a_refusing_pubrec_makes_room(broker: Running) -> None:
    client = await broker.client("s", V5, receive_maximum=1)
    await client.subscribed("t", qos=2)
    for number in range(2):
        await client.publish("t", b"%d" % number, 2)
    first = await client.expect_message("t", b"0", 2)
    await client.send(Pubrec(first.packet_id, Reason.UNSPECIFIED))
    await client.receive("t", b"1", 2)


async def test_a_resumed_session_starts_with_the_new_connections_maximum(broker: Running) -> None:
    client = await broker.client("s", V5, receive_maximum=5, **kept(V5))
    other = await broker.client("p", V5)
    await client.subscribed("t", qos=1)
    for number in range(5):
        await other.publish("t", b"%d" % number, 1)
    for number in range(5):
        await client.expect_message("t", b"%d" % number, 1)
    client.drop()
    client = await broker.client("s", V5, receive_maximum=2, present=True, **kept(V5))
    waiting = [await client.expect_message("t", b"%d" % n, 1, dup=True) for n in range(2)]
    await client.quiet()
    for number in range(2, 5):
        await client.acknowledge(waiting.pop(0))
        waiting.append(await client.expect_message("t", b"%d" % number, 1, dup=True))


# -- receive maximum: the client's to ours


async def test_a_client_that_sends_more_than_the_server_takes_is_ended(start: Start) -> None:
    broker = await start(receive_maximum=2)
    client = await broker.client("p", V5)
    assert client.connack.receive_maximum == 2
    await client.send(Publish("t", b"1", 2, packet_id=1), Publish("t", b"2", 2, packet_id=2))
    await client.answer(Pubrec, packet_id=1)
    await client.answer(Pubrec, packet_id=2)
    await client.send(Publish("t", b"3", 2, packet_id=3))
    await client.expect_end(Reason.RECEIVE_MAXIMUM_EXCEEDED)


async def test_what_was_acknowledged_counts_no_longer(start: Start) -> None:
    broker = await start(receive_maximum=2)
    client = await broker.client("p", V5)
    for number in range(1, 20):
        await client.publish("t", b"%d" % number, 1 + number % 2)
    await client.send(Publish("t", b"dup", 2, packet_id=50))
    await client.answer(Pubrec)
    for _ in range(5):  # the same message again takes no more
        await client.send(Publish("t", b"dup", 2, dup=True, packet_id=50))
        await client.answer(Pubrec)
    await client.send(Pubrel(50))
    await client.answer(Pubcomp)


# -- packet size


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_a_message_too_large_for_a_client_counts_as_sent_to_it_alone(broker: Running, qos: int) -> None:
    small = await broker.client("small", V5, maximum_packet_size=100)
    large = await broker.client("large", V5)
    for client in (small, large):
        await client.subscribed("t", qos=qos)
    for payload in (b"1" * 50, b"2" * 500, b"3" * 50):
        await large.publish("t", payload, qos)
        await large.receive("t", payload, qos)
    await small.receive("t", b"1" * 50, qos)
    await small.receive("t", b"3" * 50, qos)
    await small.quiet()


async def test_the_limit_is_the_whole_packet_to_the_byte(broker: Running) -> None:
    fits = len(encode(Publish("t", b"x" * 50, 1, packet_id=1), V5))
    other = await broker.client("p", V5)
    just = await broker.client("just", V5, maximum_packet_size=fits)
    under = await broker.client("under", V5, maximum_packet_size=fits - 1)
    for client in (just, under):
        await client.subscribed("t", qos=1)
    await other.publish("t", b"x" * 50, 1)
    await just.receive("t", b"x" * 50, 1)
    await under.quiet()


async def test_a_queued_message_too_large_for_the_connection_is_not_sent(broker: Running) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=1)
    await client.leave()
    other = await broker.client("p", V5)
    for payload in (b"1", b"2" * 500, b"3"):
        await other.publish("t", payload, 1)
    client = await broker.client("s", V5, maximum_packet_size=100, present=True, **kept(V5))
    await client.receive("t", b"1", 1)
    await client.receive("t", b"3", 1)
    await client.quiet()


async def test_a_retained_message_too_large_for_the_client_is_not_sent(broker: Running) -> None:
    client = await broker.client("s", V5, maximum_packet_size=100)
    other = await broker.client("p", V5)
    await other.publish("t/1", b"1" * 500, 1, retain=True)
    await other.publish("t/2", b"2", 1, retain=True)
    await client.subscribed("t/+", qos=1)
    await client.receive("t/2", b"2", 1, retain=True)
    await client.quiet()


async def test_a_packet_above_the_servers_maximum_ends_the_connection(start: Start, version: int) -> None:
    broker = await start(max_packet_size=200)
    client = await broker.client("p", version)
    if version == V5:
        assert client.connack.maximum_packet_size == 200
    await client.publish("t", b"x" * 150, 1)
    await client.send(Publish("t", b"x" * 300))
    await client.expect_end(Reason.PACKET_TOO_LARGE)


async def test_a_payload_above_the_servers_maximum_is_refused(start: Start, version: int) -> None:
    broker = await start(max_payload=10)
    client = await broker.client("p", version)
    await client.subscribed("t", qos=1)
    await client.publish("t", b"x" * 10, 1)
    await client.receive("t", b"x" * 10, 1)
    if version == V5:
        assert await client.publish("t", b"x" * 11, 1) >= 0x80
        await client.quiet()


# -- topic aliases: the client's


async def test_an_alias_stands_for_its_topic_and_may_be_moved(broker: Running) -> None:
    client = await broker.client("p", V5)
    watcher = await broker.client("w", V5)
    await watcher.subscribed("#", qos=1)
    await client.publish("first", b"1", 1, topic_alias=1)
    await client.publish("", b"2", 1, topic_alias=1)
    await client.publish("second", b"3", 1, topic_alias=1)
    await client.publish("", b"4", 1, topic_alias=1)
    await client.publish("third", b"5", 1, topic_alias=client.connack.topic_alias_maximum)
    await client.publish("", b"6", 1, topic_alias=client.connack.topic_alias_maximum)
    for topic, payload in (
        ("first", b"1"),
        ("first", b"2"),
        ("second", b"3"),
        ("second", b"4"),
        ("third", b"5"),
        ("third", b"6"),
    ):
        await watcher.receive(topic, payload, 1)


async def test_an_alias_does_not_outlive_its_connection(broker: Running) -> None:
    client = await broker.client("p", V5, **kept(V5))
    await client.publish("first", b"1", 1, topic_alias=1)
    await client.leave()
    client = await broker.client("p", V5, present=True, **kept(V5))
    await client.send(Publish("", b"2", 0, topic_alias=1))
    await client.expect_end(Reason.PROTOCOL_ERROR)


async def test_an_alias_of_one_client_is_not_anothers(broker: Running) -> None:
    one, two = await broker.client("one", V5), await broker.client("two", V5)
    await one.publish("first", b"1", 1, topic_alias=1)
    await two.send(Publish("", b"2", 0, topic_alias=1))
    await two.expect_end(Reason.PROTOCOL_ERROR)
    await one.quiet()


async def test_an_alias_that_was_never_said_is_a_protocol_error(broker: Running) -> None:
    client = await broker.client("p", V5)
    await client.send(Publish("", b"1", 0, topic_alias=1))
    await client.expect_end(Reason.PROTOCOL_ERROR)


async def test_an_alias_above_the_servers_maximum_ends_the_connection(start: Start) -> None:
    broker = await start(topic_alias_max=3)
    client = await broker.client("p", V5)
    await client.publish("t", b"1", 1, topic_alias=3)
    await client.send(Publish("t", b"2", 0, topic_alias=4))
    await client.expect_end(Reason.TOPIC_ALIAS_INVALID)


async def test_no_alias_is_taken_where_the_maximum_is_0(start: Start) -> None:
    broker = await start(topic_alias_max=0)
    client = await broker.client("p", V5)
    assert client.connack.topic_alias_maximum == 0
    await client.send(Publish("t", b"1", 0, topic_alias=1))
    await client.expect_end(Reason.TOPIC_ALIAS_INVALID)


# -- topic aliases: the server's


async def test_no_alias_is_sent_to_who_allows_none(broker: Running) -> None:
    client = await broker.client("s", V5)
    await client.subscribed("#", qos=1)
    for _ in range(3):
        await client.publish("a/long/topic/that/would/be/worth/it", b"1", 1)
        message = await client.receive("a/long/topic/that/would/be/worth/it", b"1", 1)
        assert message.topic_alias == 0


async def test_aliases_are_sent_to_who_allows_them_and_stay_within_the_maximum(broker: Running) -> None:
    """`strictness` puts topics back, and fails above the maximum or for an alias that was not said."""
    client = await broker.client("s", V5, topic_alias_maximum=3)
    await client.subscribed("#", qos=1)
    used = set()
    for number in range(30):
        topic = f"topic/{number % 6}"
        await client.publish(topic, b"%d" % number, 1)
        used.add((await client.receive(topic, b"%d" % number, 1)).topic_alias)
    assert used & {1, 2, 3}


async def test_the_servers_aliases_begin_anew_with_each_connection(broker: Running) -> None:
    client = await broker.client("s", V5, topic_alias_maximum=10, **kept(V5))
    await client.subscribed("t", qos=1)
    for number in range(3):
        await client.publish("t", b"%d" % number, 1)
    for number in range(3):
        await client.expect_message("t", b"%d" % number, 1)
    client.drop()
    client = await broker.client("s", V5, topic_alias_maximum=10, present=True, **kept(V5))
    for number in range(3):
        await client.receive("t", b"%d" % number, 1, dup=True)


# -- windows of 3.1.1 are the server's own


async def test_3_1_1_gets_no_more_at_once_than_the_setting_says(start: Start) -> None:
    broker = await start(max_inflight=4)
    client = await broker.client("s", V311)
    await client.subscribed("t", qos=1)
    for number in range(10):
        await client.publish("t", b"%d" % number, 1)
    waiting = [await client.expect_message("t", b"%d" % n, 1) for n in range(4)]
    await client.quiet()
    await client.send(*(Puback(message.packet_id) for message in waiting))
    for number in range(4, 8):
        await client.expect_message("t", b"%d" % number, 1)
    await client.quiet()
