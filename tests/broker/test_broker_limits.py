"""Hostile and careless clients: what ends a connection, what is refused, what is bounded."""

from __future__ import annotations

import pytest

from holdfast.broker.hooks import Access
from holdfast.broker.packets import (
    Connect,
    Disconnect,
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
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import EverybodyMay, House, held_commits, settle, until_read


async def test_a_connection_that_says_nothing_is_closed(house: House) -> None:
    silent = house.speaker()
    slow = house.speaker()
    slow.write(b"\x10\x40\x00")
    house.tick(9.9)
    assert not silent.wire.is_closed
    house.tick(0.2)
    assert silent.wire.is_closed
    assert slow.wire.is_closed
    assert not silent.wire.sent


async def test_silence_for_one_and_a_half_keep_alives_closes(house: House) -> None:
    new, old = await house.client("n", keep_alive=10), await house.client("o", 4, keep_alive=10)
    endless = await house.client("e", keep_alive=0)
    house.tick()
    house.tick(14)
    new.say(Pingreq())
    await new.get(Pingresp)
    house.tick(1.5)
    assert old.wire.is_closed
    assert not new.wire.is_closed
    house.tick(15.5)
    assert (await new.get(Disconnect)).reason == Reason.KEEP_ALIVE_TIMEOUT
    assert not endless.wire.is_closed


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00",
        b"\xff\xff\xff\xff\xff",
        b"\x36\x03\x00\x01a",
        b"\x32\x05\x00\x01a\x00\x00",
        b"\x30\x05\x00\x03\xed\xa0\x80",
        b"\x82\x02\x00\x01",
        b"\x10\x00",
    ],
    ids=["reserved", "endless length", "QoS 3", "id 0", "surrogate", "no filter", "second CONNECT"],
)
async def test_bad_bytes_end_the_connection_and_nobody_else_notices(
    house: House, version: int, data: bytes
) -> None:
    bad, reader = await house.client("b", version), await house.client("r")
    await reader.subscribe("t")
    bad.say(Publish("t", b"good"))
    bad.write(encode(Publish("t", b"before"), version) + data + encode(Publish("t", b"after"), version))
    await bad.closed()
    if version == 5:
        assert (await bad.get(Disconnect)).reason >= 0x80
    assert [p.payload for p in await reader.get_all(Publish, 2)] == [b"good", b"before"]
    await reader.nothing()


async def test_a_packet_before_connect_closes_without_a_word(house: House) -> None:
    early = house.speaker()
    early.write(b"\xc0\x00")
    await early.closed()
    assert not early.wire.sent


@pytest.mark.parametrize("level", [0, 2, 6])
async def test_an_unknown_version_is_refused_in_the_words_of_3_1_1(house: House, level: int) -> None:
    early = house.speaker()
    early.write(b"\x10\x0c\x00\x04MQTT" + bytes((level,)) + b"\x02\x00\x00\x00\x00")
    await early.closed()
    assert bytes(early.wire.sent) == b"\x20\x02\x00\x01"


async def test_a_version_that_is_not_wanted_is_refused(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(versions=("5",))) as house:
        old = house.speaker(4)
        assert (await old.connect("c")).reason == Reason.UNSUPPORTED_PROTOCOL_VERSION
        await house.client("d", 5)


async def test_connections_are_limited_in_all_and_for_each_address(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(max_connections=3, max_connections_per_address=2)) as house:
        first = await house.client("a")
        await house.client("b")
        assert (await house.speaker().connect("c")).reason == Reason.QUOTA_EXCEEDED
        await settle()
        assert (await house.speaker(address="192.0.2.2").connect("d")).reason == Reason.SUCCESS
        assert (await house.speaker(address="192.0.2.3").connect("e")).reason == Reason.QUOTA_EXCEEDED
        first.drop()
        await settle()
        await house.client("e")
        crowd = [house.speaker(address=f"198.51.100.{n}") for n in range(9)]
        assert [speaker.wire.is_closed for speaker in crowd] == [False] * 3 + [True] * 6


@pytest.mark.parametrize("version", [4, 5])
async def test_a_user_leaves_no_more_sessions_than_allowed(open_house: OpenHouse, version: int) -> None:
    lasting: dict[str, object] = {"clean_start": False} | ({"session_expiry": 60} if version == 5 else {})
    async with open_house(settings=Settings(max_sessions_per_user=2)) as house:
        clock = house.clock
        first = await house.client("a", version, username="u", **lasting)
        await house.client("b", version, username="u", **lasting)
        first.drop()
        refused = house.speaker(version)
        refusal = await refused.connect("c", username="u", **lasting)
        assert refusal.reason == (Reason.QUOTA_EXCEEDED if version == 5 else Reason.SERVER_UNAVAILABLE)
        assert refused.wire.is_closed
        assert house.broker.session("c") is None
        await house.client("a", version, username="u", **lasting)  # its own is there already
        await house.client("c", version, username="u", clean_start=True)  # and this one leaves nothing
        await house.client("d", version, username="v", **lasting)
    async with open_house(settings=Settings(max_sessions_per_user=2), clock=clock) as house:
        refused = house.speaker(version)
        assert (await refused.connect("c", username="u", **lasting)).reason == refusal.reason
        await house.client("a", version, username="u", clean_start=True)  # ends one
        await house.client("c", version, username="u", **lasting)


async def test_a_session_that_is_made_anew_takes_its_own_place(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(max_sessions_per_user=1)) as house:
        for _ in range(3):
            await house.client("a", username="u", clean_start=True, session_expiry=60)
        assert await house.broker.delete_session("a")
        await house.client("b", username="u", session_expiry=60)


async def test_who_sends_too_fast_is_read_later(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(message_rate=100)) as house:
        fast = await house.client("f")
        for _ in range(100):
            fast.publish("t", b"")
        assert fast.wire.is_reading
        for _ in range(5):
            fast.publish("t", b"")
        assert not fast.wire.is_reading
        await until_read(fast)
    async with open_house(settings=Settings(byte_rate=1_000)) as house:
        fast = await house.client("f")
        fast.publish("t", bytes(1_100))
        assert not fast.wire.is_reading


async def test_subscriptions_are_limited_for_each_session(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(max_subscriptions=2, max_levels=4)) as house:
        greedy = await house.client("g")
        filters = ("a", "b", "c", "a", "a/b/c/d/e")
        greedy.say(Subscribe(1, tuple(Subscription(name) for name in filters)))
        assert (await greedy.get(Suback)).reasons == (
            0,
            0,
            Reason.QUOTA_EXCEEDED,
            0,
            Reason.TOPIC_FILTER_INVALID,
        )
        greedy.publish("a/b/c/d/e", b"", 1)
        assert (await greedy.get(Puback)).reason == Reason.TOPIC_NAME_INVALID


async def test_ten_thousand_subscriptions_in_one_packet_are_answered_one_by_one(house: House) -> None:
    greedy = await house.lasting("g")
    greedy.say(Subscribe(1, tuple(Subscription(f"{n}/+/#") for n in range(10_000))))
    reasons = (await greedy.get(Suback)).reasons
    assert reasons.count(0) == house.broker.settings.max_subscriptions
    assert len(reasons) == 10_000


async def test_what_is_not_allowed_is_refused_in_the_words_of_the_version(open_house: OpenHouse) -> None:
    hooks = EverybodyMay()
    hooks.denied |= {("me", Access.PUBLISH, "t"), ("me", Access.SUBSCRIBE, "s"), ("me", Access.RECEIVE, "r")}
    for slow in (False, True):
        hooks.slow = slow
        async with open_house(hooks=hooks) as house:
            new = await house.client("n", username="me")
            old = await house.client("o", 4, username="me")
            new.publish("t", b"", 1)
            new.publish("t", b"", 2)
            assert (await new.get(Puback)).reason == Reason.NOT_AUTHORIZED
            assert (await new.get(Pubrec)).reason == Reason.NOT_AUTHORIZED
            old.publish("t", b"", 1)
            assert (await old.get(Puback)).packet_id == 1
            old.publish("t", b"", 2)
            await old.get(Pubrec)
            old.say(Pubrel(2))
            assert await old.get(Pubcomp) == Pubcomp(2)
            assert (await new.subscribe("s", 1)).reasons == (Reason.NOT_AUTHORIZED,)
            assert (await old.subscribe("s", 1)).reasons == (0x80,)
            await new.subscribe("#", 0)
            await old.subscribe("#", 1)
            other = await house.client("w")
            for topic in ("r", "x"):
                other.publish(topic, b"", 1)
            assert (await new.get(Publish)).topic == "x"
            assert (await old.get(Publish)).topic == "x"


async def test_packets_behind_one_that_has_to_be_looked_up_keep_their_order(open_house: OpenHouse) -> None:
    hooks = EverybodyMay()
    hooks.slow = True
    async with open_house(hooks=hooks) as house:
        reader, writer = await house.client("r"), await house.client("w")
        await reader.subscribe("#")
        for number in range(20):
            writer.publish(f"t/{number % 3}", b"%d" % number)
        assert not writer.wire.is_reading
        assert [int(p.payload) for p in await reader.get_all(Publish, 20)] == list(range(20))
        assert writer.wire.is_reading


async def test_a_3_1_1_client_that_publishes_where_it_may_not_may_be_closed(open_house: OpenHouse) -> None:
    hooks = EverybodyMay()
    hooks.denied.add(("me", Access.PUBLISH, "t"))
    async with open_house(hooks=hooks, settings=Settings(denied_publish="close")) as house:
        old = await house.client("o", 4, username="me")
        old.publish("t")
        await old.closed()


async def test_a_wrong_password_is_refused_in_the_words_of_the_version(house: House) -> None:
    for version in (3, 4, 5):
        speaker = house.speaker(version)
        answer = await speaker.connect("c", username="me", password=b"wrong")
        assert answer.reason == Reason.BAD_USER_NAME_OR_PASSWORD
        await speaker.closed()


async def test_an_unknown_acknowledgement_changes_nothing(house: House) -> None:
    for version in (4, 5):
        client = await house.client("c", version)
        client.say(Puback(9), Pubcomp(9))
        client.say(Pubrec(9))
        assert (await client.get(Pubrel)).reason == (0x92 if version == 5 else 0)
        client.say(Pubrel(9))
        assert (await client.get(Pubcomp)).reason == (0x92 if version == 5 else 0)
        client.say(Pubrec(9, Reason.UNSPECIFIED) if version == 5 else Puback(8))
        await client.nothing()


async def test_the_wrong_acknowledgement_leaves_a_message_in_flight(house: House) -> None:
    reader, writer = await house.client("r"), await house.client("w")
    await reader.subscribe("t", 2)
    writer.publish("t", b"", 1)
    writer.publish("t", b"", 2)
    one, two = await reader.get_all(Publish, 2)
    reader.say(Pubrec(one.packet_id), Pubcomp(one.packet_id), Puback(two.packet_id), Pubcomp(two.packet_id))
    assert house.broker.queued_count == 2


async def test_a_client_that_does_not_read_its_acknowledgements_is_not_read_for_ever(house: House) -> None:
    away, writer = await house.lasting("a"), await house.client("w", 4)
    await away.subscribe("t", 1)
    away.drop()
    async with held_commits(house.broker.db):
        for _ in range(2_100):
            writer.publish("t", b"", 1)
        assert not writer.wire.is_reading
    await writer.get_all(Puback, 2_100)
    assert writer.wire.is_reading


async def test_nobody_who_publishes_is_read_while_too_much_waits_for_the_disk(house: House) -> None:
    away, writer = await house.lasting("a"), await house.client("w", 4)
    await away.subscribe("t", 1)
    away.drop()
    async with held_commits(house.broker.db):
        for _ in range(9):
            writer.publish("t", bytes(1_000_000), 1)
            await settle()
        assert not writer.wire.is_reading
    await writer.get_all(Puback, 9)
    assert writer.wire.is_reading


async def test_an_answer_never_exceeds_what_the_client_takes(house: House) -> None:
    tiny = house.speaker()
    tiny.say(Connect(client_id="t", maximum_packet_size=3))
    await tiny.closed()
    assert len(tiny.wire.sent) <= 3
