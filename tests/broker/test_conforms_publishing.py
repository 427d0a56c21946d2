"""PUBLISH and its handshakes (3.3 to 3.7, 4.3, 4.4, 4.6): both ways, whole and interrupted."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import (
    V5,
    V311,
    MessageProperties,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
)
from tests.broker.conftest import Running, Start, kept

# -- from a client to the server


async def test_each_qos_is_answered_with_its_own_packet_and_identifier(broker: Running, version: int) -> None:
    client = await broker.client("p", version)
    await client.subscribed("t", qos=0)
    await client.send(Publish("t", b"0"), Pingreq())
    await client.expect_message("t", b"0")
    await client.expect(Pingresp())
    await client.send(Publish("t", b"1", 1, packet_id=65_535))
    await client.answer(Puback, packet_id=65_535, reason=0)
    await client.expect_message("t", b"1")
    await client.send(Publish("t", b"2", 2, packet_id=7))
    await client.answer(Pubrec, packet_id=7, reason=0)
    await client.send(Pubrel(7))
    await client.answer(Pubcomp, packet_id=7, reason=0)
    await client.expect_message("t", b"2")


async def test_qos_1_sent_twice_is_two_messages_after_its_puback(broker: Running, version: int) -> None:
    """The identifier is free again; what DUP says to the server, it does not say to others."""
    client = await broker.client("p", version)
    await client.subscribed("t", qos=1)
    for dup in (False, True):
        await client.send(Publish("t", b"1", 1, dup=dup, packet_id=5))
        await client.answer(Puback, packet_id=5)
        message = await client.receive("t", b"1", 1)
        assert not message.dup


async def test_qos_2_sent_twice_before_its_pubrel_is_one_message(broker: Running, version: int) -> None:
    client = await broker.client("p", version)
    watcher = await broker.client("w", version)
    await watcher.subscribed("t", qos=2)
    await client.send(Publish("t", b"1", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    await client.send(Publish("t", b"1", 2, dup=True, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    await client.send(Pubrel(5))
    await client.answer(Pubcomp, packet_id=5)
    await watcher.receive("t", b"1", 2)
    await watcher.quiet()


async def test_qos_2_sent_again_after_a_reconnect_is_one_message(broker: Running, version: int) -> None:
    watcher = await broker.client("w", version)
    await watcher.subscribed("t", qos=2)
    client = await broker.client("p", version, **kept(version))
    await client.send(Publish("t", b"1", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    client.drop()
    client = await broker.client("p", version, present=True, **kept(version))
    await client.send(Publish("t", b"1", 2, dup=True, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    client.drop()
    client = await broker.client("p", version, present=True, **kept(version))
    await client.send(Pubrel(5))
    await client.answer(Pubcomp, packet_id=5, reason=0)
    await watcher.receive("t", b"1", 2)
    await watcher.quiet()


async def test_after_pubcomp_the_identifier_is_a_new_message(broker: Running, version: int) -> None:
    client = await broker.client("p", version)
    watcher = await broker.client("w", version)
    await watcher.subscribed("t", qos=2)
    for number in range(3):
        await client.send(Publish("t", b"%d" % number, 2, packet_id=5))
        await client.answer(Pubrec, packet_id=5)
        await client.send(Pubrel(5))
        await client.answer(Pubcomp, packet_id=5)
        await watcher.receive("t", b"%d" % number, 2)
    await watcher.quiet()


async def test_a_session_that_is_discarded_forgets_its_identifiers(broker: Running, version: int) -> None:
    watcher = await broker.client("w", version)
    await watcher.subscribed("t", qos=2)
    client = await broker.client("p", version, **kept(version))
    await client.send(Publish("t", b"1", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    client.drop()
    client = await broker.client("p", version, clean=True)
    await client.send(Publish("t", b"2", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    await client.send(Pubrel(5))
    await client.answer(Pubcomp, packet_id=5)
    await watcher.receive("t", b"1", 2)
    await watcher.receive("t", b"2", 2)
    await watcher.quiet()


async def test_pubrel_is_answered_also_when_nothing_was_there(broker: Running, version: int) -> None:
    client = await broker.client("p", version)
    await client.send(Pubrel(9))
    unknown = Reason.PACKET_ID_NOT_FOUND if version == V5 else 0
    await client.expect_a(Pubcomp, packet_id=9, reason=unknown)


async def test_pubrel_again_is_answered_again(broker: Running, version: int) -> None:
    client = await broker.client("p", version)
    await client.send(Publish("t", b"1", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5)
    for _ in range(2):
        await client.send(Pubrel(5))
        await client.answer(Pubcomp, packet_id=5)


async def test_acknowledgements_of_nothing_do_no_harm(broker: Running, version: int) -> None:
    client = await broker.client("p", version)
    await client.send(Puback(3), Pubcomp(4))
    await client.quiet()
    await client.send(Pubrec(5))
    await client.expect_a(Pubrel, packet_id=5)
    await client.send(Pubcomp(5))
    await client.quiet()


async def test_a_message_that_nobody_gets_is_told_so(broker: Running) -> None:
    client = await broker.client("p", V5)
    nobody = Reason.NO_MATCHING_SUBSCRIBERS
    assert await client.publish("nobody/here", b"1", 1) == nobody
    assert await client.publish("nobody/here", b"1", 2) == nobody
    await client.subscribed("nobody/+", qos=0)
    assert await client.publish("nobody/here", b"1", 1) == 0
    await client.receive("nobody/here", b"1", 0)


async def test_answers_come_in_the_order_of_the_messages(broker: Running, version: int) -> None:
    """`strictness` holds PUBACKs and PUBRECs to the order of their messages, PUBCOMPs to their being asked for."""
    client = await broker.client("p", version)
    order = [11, 3, 200, 4, 90, 7, 65_535, 1]
    await client.send(*(Publish("t", b"1", 1, packet_id=n) for n in order))
    for number in order:
        await client.expect_a(Puback, packet_id=number)
    await client.send(*(Publish("t", b"2", 2, packet_id=n) for n in order))
    for number in order:
        await client.expect_a(Pubrec, packet_id=number)
    await client.send(*(Pubrel(n) for n in order))
    for number in order:
        await client.expect_a(Pubcomp, packet_id=number)


async def test_a_client_that_may_not_publish_is_told_and_its_message_goes_nowhere(
    start: Start, version: int
) -> None:
    """3.1.1 has no word for it: acknowledged as usual."""
    broker = await start(denied=("secret/#",))
    watcher = await broker.client("w", version)
    await watcher.subscribed("#", qos=2)
    client = await broker.client("p", version)
    told = Reason.NOT_AUTHORIZED if version == V5 else 0
    await client.publish("secret/a", b"0")
    assert await client.publish("secret/a", b"1", 1) == told
    assert await client.publish("secret/a", b"2", 2, retain=True) == told
    await watcher.quiet()


async def test_3_1_1_a_client_that_may_not_publish_can_be_closed(start: Start) -> None:
    broker = await start(denied=("secret/#",), denied_publish="close")
    client = await broker.client("p", V311)
    await client.send(Publish("secret/a", b"1", 1, packet_id=1))
    await client.expect_end()


async def test_after_a_refusing_pubrec_the_identifier_is_a_new_message(start: Start) -> None:
    broker = await start(denied=("secret/#",))
    watcher = await broker.client("w", V5)
    await watcher.subscribed("t", qos=2)
    client = await broker.client("p", V5)
    await client.send(Publish("secret/a", b"1", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5, reason=Reason.NOT_AUTHORIZED)
    await client.send(Publish("t", b"2", 2, packet_id=5))
    await client.answer(Pubrec, packet_id=5, reason=0)
    await watcher.receive("t", b"2", 2)


async def test_a_payload_that_is_not_the_utf8_it_claims_is_refused(broker: Running) -> None:
    client = await broker.client("p", V5)
    await client.subscribed("t", qos=2)
    claims = MessageProperties(payload_format=1)
    assert await client.publish("t", b"\xff", 1, properties=claims) == Reason.PAYLOAD_FORMAT_INVALID
    assert await client.publish("t", b"\xff", 2, properties=claims) == Reason.PAYLOAD_FORMAT_INVALID
    assert await client.publish("t", "ü".encode(), 1, properties=claims) == 0
    await client.receive("t", "ü".encode(), 1, properties=claims)
    await client.quiet()


# -- from the server to a client


async def test_every_property_of_a_message_arrives_as_it_was(broker: Running) -> None:
    properties = MessageProperties(
        payload_format=1,
        content_type="a/b; ü",
        response_topic="answer/here",
        correlation_data=bytes(range(256)),
        user_properties=(("z", "1"), ("a", ""), ("z", "1"), ("", "ü")),
    )
    client = await broker.client("s", V5)
    await client.subscribed("t", qos=2)
    for qos in (0, 1, 2):
        await client.publish("t", b"text", qos, properties=properties)
        await client.receive("t", b"text", qos, properties=properties)
    empty = MessageProperties(payload_format=0, content_type="", correlation_data=b"")
    await client.publish("t", b"\xff", 1, properties=empty)
    await client.receive("t", b"\xff", 1, properties=empty)


async def test_3_1_1_gets_the_message_without_its_properties(broker: Running) -> None:
    new, old = await broker.client("new", V5), await broker.client("old", V311)
    await old.subscribed("t", qos=1)
    await new.publish("t", b"1", 1, properties=MessageProperties(content_type="text"))
    await old.receive("t", b"1", 1)


async def test_identifiers_count_up_from_1_and_are_used_by_one_message_at_a_time(
    broker: Running, version: int
) -> None:
    client = await broker.client("s", version)
    other = await broker.client("p", version)
    await client.subscribed("t", qos=2)
    for number in range(1, 21):
        await other.publish("t", b"%d" % number, 1 + number % 2)
    messages = [await client.expect_a(Publish, packet_id=number, dup=False) for number in range(1, 21)]
    for message in messages:
        await client.acknowledge(message)
    await other.publish("t", b"next", 1)
    await client.receive("t", b"next", 1, packet_id=21)


@pytest.mark.parametrize("qos", [1, 2])
async def test_what_was_not_acknowledged_comes_again_at_resume_and_only_then(
    broker: Running, version: int, qos: int
) -> None:
    """In the same order, with the same identifiers, with DUP; what was acknowledged does not."""
    client = await broker.client("s", version, **kept(version))
    other = await broker.client("p", version)
    await client.subscribed("t", qos=qos)
    for number in range(6):
        await other.publish("t", b"%d" % number, qos)
    messages = [await client.expect_message("t", b"%d" % n, qos, dup=False) for n in range(6)]
    await client.quiet()
    await client.acknowledge(messages[0])
    await client.quiet()
    client.drop()
    client = await broker.client("s", version, present=True, **kept(version))
    for first in messages[1:]:
        again = await client.expect_message("t", first.payload, qos, dup=True, packet_id=first.packet_id)
        await client.acknowledge(again)
    await client.quiet()


async def test_a_pubrel_comes_again_at_resume_and_its_message_does_not(broker: Running, version: int) -> None:
    client = await broker.client("s", version, **kept(version))
    other = await broker.client("p", version)
    await client.subscribed("t", qos=2)
    await other.publish("t", b"1", 2)
    await other.publish("t", b"2", 2)
    first = await client.expect_message("t", b"1", 2)
    second = await client.expect_message("t", b"2", 2)
    await client.send(Pubrec(first.packet_id))
    await client.answer(Pubrel, packet_id=first.packet_id)
    client.drop()
    client = await broker.client("s", version, present=True, **kept(version))
    await client.expect_a(Pubrel, packet_id=first.packet_id)
    again = await client.expect_message("t", b"2", 2, dup=True, packet_id=second.packet_id)
    await client.send(Pubcomp(first.packet_id))
    await client.acknowledge(again)
    await client.quiet()
    await client.leave()
    client = await broker.client("s", version, present=True, **kept(version))
    await client.quiet()


async def test_pubrels_come_in_the_order_of_the_pubrecs(broker: Running, version: int) -> None:
    client = await broker.client("s", version)
    other = await broker.client("p", version)
    await client.subscribed("t", qos=2)
    for number in range(4):
        await other.publish("t", b"%d" % number, 2)
    messages = [await client.expect_message("t", b"%d" % n, 2) for n in range(4)]
    order = [messages[n].packet_id for n in (0, 1, 2, 3)]
    await client.send(*(Pubrec(number) for number in order))
    for number in order:
        await client.expect_a(Pubrel, packet_id=number)
    await client.send(*(Pubcomp(number) for number in order))
    await client.quiet()


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_refusing_acknowledgement_ends_the_message(broker: Running, qos: int) -> None:
    client = await broker.client("s", V5, **kept(V5))
    await client.subscribed("t", qos=qos)
    await client.publish("t", b"1", qos)
    message = await client.expect_message("t", b"1", qos)
    refusal = Puback if qos == 1 else Pubrec
    await client.send(refusal(message.packet_id, Reason.IMPLEMENTATION_SPECIFIC))
    await client.quiet()
    client.drop()
    client = await broker.client("s", V5, present=True, **kept(V5))
    await client.quiet()


async def test_a_message_for_a_session_that_is_away_waits_for_it(broker: Running, version: int) -> None:
    client = await broker.client("s", version, **kept(version))
    await client.subscribed("t/+", qos=2)
    await client.leave()
    other = await broker.client("p", version)
    for number in range(200):
        await other.publish(f"t/{number % 3}", b"%d" % number, 1 + number % 2)
    client = await broker.client("s", version, present=True, **kept(version))
    for number in range(200):
        await client.receive(f"t/{number % 3}", b"%d" % number, 1 + number % 2, dup=False)
    await client.quiet()


async def test_a_message_goes_into_every_session_that_matches(broker: Running, version: int) -> None:
    away = []
    for number in range(10):
        client = await broker.client(f"s{number}", version, **kept(version))
        await client.subscribed("t/#" if number % 2 else "t/+", qos=1)
        await client.leave()
        away.append(f"s{number}")
    other = await broker.client("p", version)
    await other.publish("t/1", b"1", 1)
    for name in away:
        client = await broker.client(name, version, present=True, **kept(version))
        await client.receive("t/1", b"1", 1)
        await client.quiet()


# -- order


@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_messages_of_a_publisher_on_a_topic_keep_their_order(
    broker: Running, version: int, qos: int
) -> None:
    client = await broker.client("s", version)
    other = await broker.client("p", version)
    await client.subscribed("t/+", qos=qos)
    for block in range(0, 300, 20):
        numbers = range(block, block + 20)
        await other.send(
            *(Publish(f"t/{n % 2}", b"%d" % n, qos, packet_id=n + 1 if qos else 0) for n in numbers)
        )
        if qos == 1:
            for n in numbers:
                await other.answer(Puback, packet_id=n + 1)
        elif qos == 2:
            for n in numbers:
                await other.answer(Pubrec, packet_id=n + 1)
            await other.send(*(Pubrel(n + 1) for n in numbers))
            for n in numbers:
                await other.answer(Pubcomp, packet_id=n + 1)
        got: dict[str, list[int]] = {"t/0": [], "t/1": []}
        for _ in numbers:
            message = await client.expect_a(Publish, qos=qos)
            await client.acknowledge(message)
            got[message.topic].append(int(message.payload))
        assert got == {f"t/{n}": [m for m in numbers if m % 2 == n] for n in (0, 1)}


async def test_order_holds_from_what_was_queued_into_what_comes_live(broker: Running, version: int) -> None:
    client = await broker.client("s", version, **kept(version))
    await client.subscribed("t", qos=1)
    await client.leave()
    other = await broker.client("p", version)
    for number in range(50):
        await other.publish("t", b"%d" % number, 1)
    client = await broker.client("s", version, present=True, **kept(version))
    for number in range(50, 100):
        await other.publish("t", b"%d" % number, 1)
    for number in range(100):
        await client.receive("t", b"%d" % number, 1)
    await client.quiet()
