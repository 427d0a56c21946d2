"""CONNECT and CONNACK (3.1, 3.2) over the network: who is let in, as whom, and with which session."""

from __future__ import annotations

import string

import pytest

from holdfast.broker.packets import (
    V5,
    V31,
    V311,
    Connack,
    Connect,
    Decoder,
    Disconnect,
    MessageProperties,
    Pingreq,
    Pingresp,
    Publish,
    Reason,
    Side,
    Suback,
    Subscribe,
    Subscription,
    Will,
    encode,
)
from tests.broker.conftest import Running, Start, kept
from tests.broker.wire_examples import wire

LETTERS = string.digits + string.ascii_letters


async def refused(broker: Running, version: int, reason: int, **fields: object) -> None:
    """CONNACK with the reason and without a session, then the end."""
    client = await broker.open(version)
    connack = await client.connect(**fields)
    assert (connack.reason, connack.session_present) == (reason, False)
    assert await client.closed() is None


@pytest.mark.parametrize("name", ["MQTTX", "mqtt", "HTTP", ""])
async def test_another_protocol_is_closed(broker: Running, name: str) -> None:
    client = await broker.open(V5)
    body = wire(f'"{name}"') + wire('05 02 00 00 00 "a"')
    await client.send_bytes(bytes((0x10, len(body))) + body)
    assert await client.closed_with_bytes() == b""


@pytest.mark.parametrize("level", [1, 2, 6, 255])
async def test_an_unknown_level_is_told_so_and_closed(broker: Running, level: int) -> None:
    client = await broker.open(V311)
    await client.send_bytes(wire(f'10 0d "MQTT" {level:02x} 02 00 00 "a"'))
    assert await client.closed_with_bytes() == wire("20 02 00 01")


async def test_an_old_level_is_answered_in_words_of_its_own(broker: Running) -> None:
    """3.1 has the name MQIsdp and no session present."""
    client = await broker.client("old", V31, clean=False)
    await client.leave()
    again = await broker.client("old", V31, clean=False)
    assert not again.connack.session_present
    await again.quiet()


async def test_a_good_connect_is_answered_with_success(broker: Running, version: int) -> None:
    client = await broker.open(version)
    connack = await client.connect("good", user_properties=(("a", "b"),) if version == V5 else ())
    assert (connack.reason, connack.session_present) == (Reason.SUCCESS, False)


async def test_a_malformed_connect_is_closed_without_disconnect(broker: Running, version: int) -> None:
    """CONNACK may say why in 5.0; in 3.1.1 there is none. Nobody else notices."""
    other = await broker.client("other", version)
    client = await broker.open(version)
    reserved_flag = wire(f'"MQTT" {version:02x} 03 00 00') + (b"\0" if version == V5 else b"") + wire('"a"')
    await client.send_bytes(bytes((0x10, len(reserved_flag))) + reserved_flag)
    said = await client.closed_with_bytes()
    if version == V5:
        (connack,) = Decoder(Side.CLIENT, V5).receive_data(said)
        assert isinstance(connack, Connack)
        assert connack.reason == Reason.MALFORMED_PACKET
    else:
        assert said == b""
    await other.quiet()


async def test_what_is_sent_right_behind_connect_is_processed(broker: Running, version: int) -> None:
    client = await broker.open(version)
    await client.send(
        Connect(version=version, client_id="eager"),
        Subscribe(1, (Subscription("eager/+"),)),
        Publish("eager/a", b"1"),
        Pingreq(),
    )
    await client.expect_a(Connack, reason=0)
    await client.expect_a(Suback, packet_id=1)
    await client.expect_message("eager/a", b"1")
    await client.expect(Pingresp())


async def test_what_is_sent_behind_a_refused_connect_is_not_processed(start: Start, version: int) -> None:
    broker = await start(password_for={"ann": "secret"})
    watcher = await broker.client("watcher", version, username="ann", password=b"secret")
    await watcher.subscribed("#")
    client = await broker.open(version)
    await client.send(
        Connect(version=version, client_id="x", username="ann", password=b"wrong"),
        Publish("x", b"never", retain=True),
    )
    connack = await client.expect_a(Connack)
    assert connack.reason in (Reason.BAD_USER_NAME_OR_PASSWORD, Reason.NOT_AUTHORIZED)
    assert await client.closed() is None
    await watcher.quiet()


async def test_who_may_not_in_is_refused_without_a_session_and_closed(start: Start, version: int) -> None:
    broker = await start(password_for={"ann": "secret"})
    first = await broker.client("x", version, username="ann", password=b"secret", **kept(version))
    await first.leave()
    for fields in (
        {"username": "ann", "password": b"wrong"},
        {"username": "bob", "password": b"secret"},
        {},
    ):
        client = await broker.open(version)
        connack = await client.connect("x", **fields, **kept(version))
        assert connack.reason >= 0x80
        assert not connack.session_present
        assert await client.closed() is None
    again = await broker.client(
        "x", version, username="ann", password=b"secret", present=True, **kept(version)
    )
    await again.quiet()


async def test_another_users_client_id_is_refused(start: Start, version: int) -> None:
    broker = await start(password_for={"ann": "a", "bob": "b"})
    ann = await broker.client("mine", version, username="ann", password=b"a", **kept(version))
    await refused(broker, version, Reason.CLIENT_ID_NOT_VALID, name="mine", username="bob", password=b"b")
    await ann.quiet()
    await ann.leave()
    await refused(broker, version, Reason.CLIENT_ID_NOT_VALID, name="mine", username="bob", password=b"b")


# -- clean and not


async def test_a_session_is_made_kept_resumed_and_discarded(broker: Running, version: int) -> None:
    first = await broker.client("s", version, present=False, **kept(version))
    await first.subscribed("s/topic", qos=1)
    await first.leave()
    second = await broker.client("s", version, present=True, **kept(version))
    assert await second.publish("s/topic", b"still subscribed", 1) == 0
    await second.receive("s/topic", b"still subscribed", 1)
    await second.leave()
    clean = await broker.client("s", version, present=False, clean=True)
    await clean.publish("s/topic", b"no more", 1)
    await clean.quiet()
    await clean.leave()
    await broker.client("s", version, present=False, **kept(version))


async def test_a_clean_session_leaves_nothing(broker: Running) -> None:
    client = await broker.client("c", V311, clean=True)
    await client.subscribed("c", qos=1)
    await client.leave()
    again = await broker.client("c", V311, clean=False, present=False)
    await again.publish("c", b"1", 1)
    await again.quiet()


async def test_clean_discards_what_was_queued_but_no_retained_message(broker: Running, version: int) -> None:
    client = await broker.client("d", version, **kept(version))
    await client.subscribed("d/#", qos=1)
    await client.leave()
    other = await broker.client("other", version)
    await other.publish("d/queued", b"q", 1)
    await other.publish("d/kept", b"k", 1, retain=True)
    clean = await broker.client("d", version, present=False, clean=True)
    await clean.quiet()
    await clean.subscribed("d/#", qos=1)
    await clean.receive("d/kept", b"k", 1, retain=True)
    await clean.quiet()


async def test_the_client_id_names_the_session(broker: Running, version: int) -> None:
    for name in ("one", "two", "ONE", "öne", " one"):
        client = await broker.client(name, version, present=False, **kept(version))
        await client.subscribed(f"named/{name}", qos=1)
        await client.leave()
    other = await broker.client("publisher", version)
    for name in ("one", "two", "ONE", "öne", " one"):
        await other.publish(f"named/{name}", name.encode(), 1)
    for name in ("one", "two", "ONE", "öne", " one"):
        client = await broker.client(name, version, present=True, **kept(version))
        await client.receive(f"named/{name}", name.encode(), 1)
        await client.quiet()


@pytest.mark.parametrize("name", ["a", LETTERS[:23], LETTERS[23:46], LETTERS[46:]])
async def test_letters_and_digits_up_to_23_are_a_client_id(broker: Running, version: int, name: str) -> None:
    client = await broker.client(name, version)
    assert client.connack.assigned_client_id is None


async def test_an_empty_client_id_gets_one_of_its_own(broker: Running, version: int) -> None:
    clients = [await broker.client("", version, clean=True, present=False) for _ in range(3)]
    for client in clients:
        await client.quiet()  # none took another's place
    if version == V5:
        names = {client.connack.assigned_client_id for client in clients}
        assert len(names) == 3
        assert not names & {None, ""}


async def test_the_assigned_client_id_names_the_session(broker: Running) -> None:
    client = await broker.client("", V5, clean=False, session_expiry=100, present=False)
    name = client.connack.assigned_client_id
    assert name
    await client.leave()
    again = await broker.client(name, V5, clean=False, session_expiry=100, present=True)
    assert again.connack.assigned_client_id is None


async def test_3_1_1_an_empty_client_id_needs_a_clean_session(broker: Running) -> None:
    await refused(broker, V311, Reason.CLIENT_ID_NOT_VALID, name="", clean=False)


async def test_an_empty_client_id_is_refused_where_it_is_not_wanted(start: Start, version: int) -> None:
    broker = await start(empty_client_id=False)
    await refused(broker, version, Reason.CLIENT_ID_NOT_VALID, name="")


async def test_session_present_needs_the_session_not_only_its_name(broker: Running) -> None:
    """5.0: an expiry of 0 ends the session with its connection."""
    client = await broker.client("gone", V5, clean=False, session_expiry=0, present=False)
    await client.subscribed("gone", qos=1)
    await client.leave()
    await broker.client("gone", V5, clean=False, session_expiry=100, present=False)


# -- the same client id again


async def test_the_newer_connection_takes_the_session_over(broker: Running, version: int) -> None:
    old = await broker.client("twice", version, **kept(version))
    await old.subscribed("twice", qos=1)
    new = await broker.client("twice", version, present=True, **kept(version))
    await old.expect_end(Reason.SESSION_TAKEN_OVER)
    await new.publish("twice", b"1", 1)
    await new.receive("twice", b"1", 1)


async def test_a_clean_newcomer_takes_the_name_and_not_the_session(broker: Running, version: int) -> None:
    old = await broker.client("fresh", version, **kept(version))
    await old.subscribed("fresh", qos=1)
    new = await broker.client("fresh", version, present=False, clean=True)
    await old.expect_end(Reason.SESSION_TAKEN_OVER)
    await new.publish("fresh", b"1", 1)
    await new.quiet()


async def test_a_session_goes_over_from_one_version_to_the_other(broker: Running, version: int) -> None:
    other = V5 if version == V311 else V311
    first = await broker.client("both", version, **kept(version))
    await first.subscribed("both", qos=2)
    second = await broker.client("both", other, present=True, **kept(other))
    await first.expect_end(Reason.SESSION_TAKEN_OVER)
    await second.publish("both", b"1", 2)
    await second.receive("both", b"1", 2)


# -- what the answer says


async def test_limits_of_the_server_are_told(start: Start) -> None:
    broker = await start(max_qos=1, retain=False, receive_maximum=7, max_packet_size=2_000, topic_alias_max=3)
    client = await broker.client("told", V5)
    told = client.connack
    assert (told.maximum_qos, told.retain_available) == (1, False)
    assert (told.receive_maximum, told.maximum_packet_size, told.topic_alias_maximum) == (7, 2_000, 3)


async def test_a_lower_maximum_qos_is_told_and_any_subscription_is_accepted(start: Start) -> None:
    broker = await start(max_qos=0)
    client = await broker.client("low", V5)
    assert client.connack.maximum_qos == 0
    assert await client.subscribe("a", "b", "c", qos=2) == (0, 0, 0)
    await client.publish("a", b"1")
    await client.receive("a", b"1", 0)


async def test_a_publish_above_the_maximum_qos_ends_the_connection(start: Start) -> None:
    broker = await start(max_qos=1)
    client = await broker.client("high", V5)
    await client.send(Publish("a", b"1", 2, packet_id=1))
    await client.expect_end(Reason.QOS_NOT_SUPPORTED)


async def test_a_will_above_the_maximum_qos_is_refused(start: Start) -> None:
    broker = await start(max_qos=1)
    await refused(broker, V5, Reason.QOS_NOT_SUPPORTED, name="w", will=Will(topic="w", qos=2))


async def test_a_retained_will_is_refused_where_nothing_is_retained(start: Start) -> None:
    broker = await start(retain=False)
    await refused(broker, V5, Reason.RETAIN_NOT_SUPPORTED, name="w", will=Will(topic="w", retain=True))


async def test_3_1_1_what_has_no_return_code_is_closed_without_a_word(start: Start) -> None:
    broker = await start(retain=False, max_qos=1)
    for will in (Will(topic="w", retain=True), Will(topic="w", qos=2)):
        client = await broker.open(V311)
        await client.send(Connect(version=V311, client_id="w", will=will))
        assert await client.closed_with_bytes() == b""


async def test_a_retained_publish_ends_the_connection_where_nothing_is_retained(start: Start) -> None:
    broker = await start(retain=False)
    client = await broker.client("r", V5)
    assert not client.connack.retain_available
    await client.send(Publish("a", b"1", retain=True))
    await client.expect_end(Reason.RETAIN_NOT_SUPPORTED)


async def test_response_information_comes_only_to_who_asks(broker: Running) -> None:
    silent = await broker.client("silent", V5)
    assert silent.connack.response_information is None
    asking = await broker.client("asking", V5, request_response_information=True)
    assert asking.connack.response_information
    await asking.subscribed(f"{asking.connack.response_information}/#")


async def test_a_session_expiry_above_the_cap_is_told(start: Start) -> None:
    broker = await start(max_session_expiry=100)
    capped = await broker.client("capped", V5, clean=False, session_expiry=1_000)
    assert capped.connack.session_expiry == 100
    fits = await broker.client("fits", V5, clean=False, session_expiry=99)
    assert fits.connack.session_expiry is None


async def test_a_connack_that_would_be_too_large_says_less(start: Start) -> None:
    """The reason string goes first; a client that cannot even take that is closed."""
    broker = await start(password_for={"ann": "secret"})
    client = await broker.open(V5)
    connack = await client.connect("x", username="ann", password=b"wrong", maximum_packet_size=8)
    assert connack.reason >= 0x80
    assert len(encode(connack, V5)) <= 8
    assert await client.closed() is None


# -- order


async def test_connack_comes_before_what_was_queued(broker: Running, version: int) -> None:
    client = await broker.client("q", version, **kept(version))
    await client.subscribed("q", qos=2)
    await client.leave()
    other = await broker.client("other", version)
    for number in range(20):
        await other.publish("q", b"%d" % number, 1 + number % 2)
    again = await broker.client("q", version, present=True, **kept(version))
    for number in range(20):
        await again.receive("q", b"%d" % number, 1 + number % 2)
    await again.quiet()


async def test_a_second_connect_ends_the_connection(broker: Running, version: int) -> None:
    client = await broker.client("again", version)
    await client.send(Connect(version=version, client_id="again"))
    await client.expect_end(Reason.PROTOCOL_ERROR)


async def test_anything_before_connect_ends_the_connection(broker: Running, version: int) -> None:
    for packet in (Pingreq(), Publish("a", b"1"), Subscribe(1, (Subscription("a"),)), Disconnect()):
        client = await broker.open(version)
        await client.send(packet)
        assert await client.closed_with_bytes() == b""


async def test_user_properties_of_connect_do_no_harm(broker: Running) -> None:
    pairs = tuple((f"name{n}", "value" * 10) for n in range(100))
    client = await broker.client("props", V5, user_properties=pairs)
    await client.quiet()


async def test_a_will_with_every_property_is_let_in(broker: Running) -> None:
    properties = MessageProperties(
        payload_format=1,
        message_expiry=10,
        content_type="text",
        response_topic="r",
        correlation_data=b"c",
        user_properties=(("a", "b"), ("a", "c")),
    )
    will = Will(topic="w", payload=b"w", qos=2, retain=True, delay=5, properties=properties)
    client = await broker.client("will", V5, will=will)
    await client.leave()
