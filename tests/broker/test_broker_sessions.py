"""Sessions: made, resumed, taken over, expired; what stays in the tree and what waits (seed, "Sessions")."""

from __future__ import annotations

import pytest

from holdfast.broker.hooks import Access
from holdfast.broker.packets import Connack, Connect, Disconnect, Puback, Publish, Pubrec, Reason
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import EverybodyMay, House


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_session_that_lasts_is_resumed_with_its_subscriptions_and_its_queue(
    house: House, version: int
) -> None:
    reader = await house.lasting("r", version)
    await reader.subscribe("t/#", 1)
    reader.drop()
    writer = await house.client("w")
    for number in range(5):
        writer.publish("t/x", b"%d" % number, 1)
        await writer.get(Puback)
    again = house.speaker(version)
    answer = await again.connect("r", clean_start=False)
    assert answer.session_present is (version > 3)
    assert [p.payload for p in await again.get_all(Publish, 5)] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("version", [4, 5])
async def test_a_clean_start_ends_the_session_that_was_there(house: House, version: int) -> None:
    reader = await house.lasting("r", version)
    await reader.subscribe("t", 1)
    reader.drop()
    writer = await house.client("w")
    writer.publish("t", b"lost", 1)
    await writer.get(Puback)
    clean = house.speaker(version)
    assert (await clean.connect("r", clean_start=True)).session_present is False
    await clean.nothing()
    assert list(house.broker.subscriptions()) == []
    assert house.broker.queued_count == 0


async def test_a_session_that_does_not_last_leaves_the_tree_when_its_client_goes(house: House) -> None:
    reader = await house.client("r")
    await reader.subscribe("t", 1)
    reader.say(Disconnect())
    await reader.closed()
    assert house.broker.session_count == 0
    assert house.broker.subscription_count == 0
    assert (await house.speaker().connect("r", clean_start=False)).session_present is False


async def test_a_session_that_was_clean_is_not_resumed_even_while_it_is_connected(house: House) -> None:
    first = await house.client("r", 4, clean_start=True)
    await first.subscribe("t", 1)
    second = house.speaker(4)
    assert (await second.connect("r", clean_start=False)).session_present is False
    assert first.wire.is_closed
    assert house.broker.subscription_count == 0


async def test_what_was_sent_and_not_acknowledged_is_sent_again_in_order_with_dup_and_its_packet_id(
    house: House,
) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 2)
    for number, qos in enumerate((1, 2, 1, 2)):
        writer.publish("t", b"%d" % number, qos)
    sent = await reader.get_all(Publish, 4)
    reader.say(Puback(sent[0].packet_id))
    await reader.nothing()
    reader.drop()
    again = await house.client("r", clean_start=False)
    resent = await again.get_all(Publish, 3)
    assert [(p.payload, p.packet_id, p.dup) for p in resent] == [
        (p.payload, p.packet_id, True) for p in sent[1:]
    ]
    await again.nothing()


async def test_a_released_message_is_released_again_and_not_sent_again(house: House) -> None:
    from holdfast.broker.packets import Pubcomp, Pubrel

    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 2)
    writer.publish("t", b"once", 2)
    packet_id = (await reader.get(Publish)).packet_id
    reader.say(Pubrec(packet_id))
    await reader.get(Pubrel)
    reader.drop()
    again = await house.client("r", clean_start=False)
    assert await again.get(Pubrel) == Pubrel(packet_id)
    again.say(Pubcomp(packet_id))
    await again.nothing()
    assert house.broker.queued_count == 0


async def test_taking_over_tells_the_old_connection_and_what_it_still_does_is_nobodys_business(
    house: House,
) -> None:
    first = await house.lasting("r")
    await first.subscribe("t", 1)
    second = await house.client("r", clean_start=False, session_expiry=3_600)
    assert (await first.get(Disconnect)).reason == Reason.SESSION_TAKEN_OVER
    first.peer.receive_data(b"\xe0\x00")  # a DISCONNECT that was on its way
    first.peer.connection_lost()
    writer = await house.client("w")
    writer.publish("t", b"x", 1)
    assert (await second.get(Publish)).payload == b"x"
    assert house.broker.connected == 2


async def test_a_client_id_belongs_to_the_user_who_made_the_session(house: House) -> None:
    mine = await house.lasting("id", username="me")
    mine.drop()
    theirs = house.speaker()
    assert (await theirs.connect("id", username="them")).reason == Reason.CLIENT_ID_NOT_VALID
    old = house.speaker(4)
    assert (await old.connect("id", username="them")).reason == Reason.CLIENT_ID_NOT_VALID
    await old.closed()
    assert (await house.speaker().connect("id", username="me", clean_start=False)).session_present


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_session_ends_when_its_client_stays_away_for_too_long_also_across_a_restart(
    open_house: OpenHouse, is_restarted: bool
) -> None:
    async with open_house() as house:
        clock = house.clock
        reader = await house.client("r", clean_start=False, session_expiry=100)
        await reader.subscribe("t", 1)
        reader.drop()
        other = await house.client("o", clean_start=False, session_expiry=1_000)
        other.drop()
        clock.advance(99)
        assert await house.broker.sweep() == 0
        if not is_restarted:
            clock.advance(1)
            assert await house.broker.sweep() == 1
            assert [session.client_id for session in house.broker.sessions()] == ["o"]
            assert house.broker.subscription_count == 0
            return
    clock.advance(1)
    async with open_house(clock=clock) as house:
        assert [session.client_id for session in house.broker.sessions()] == ["o"]
        assert house.broker.subscription_count == 0


async def test_the_time_that_a_crashed_server_was_down_counts_for_who_was_connected(
    open_house: OpenHouse,
) -> None:
    async with open_house() as house:
        clock = house.clock
        for name, expiry in (("short", 50), ("long", 500)):
            await house.client(name, clean_start=False, session_expiry=expiry)
        house.tick(100)  # the heartbeat: they are connected, and so their clocks do not run
        await house.broker.journal.drain()
        await house.crash()
    clock.advance(40)
    async with open_house(clock=clock) as house:
        assert sorted(session.client_id for session in house.broker.sessions()) == ["long", "short"]
        await house.crash()
    clock.advance(20)
    async with open_house(clock=clock) as house:
        assert [session.client_id for session in house.broker.sessions()] == ["long"]


async def test_an_expired_session_is_not_resumed_although_no_sweep_has_come_by(house: House) -> None:
    reader = await house.client("r", clean_start=False, session_expiry=10, username="me")
    reader.drop()
    house.clock.advance(10)
    answer = await house.speaker().connect("r", clean_start=False, username="somebody else")
    assert (answer.reason, answer.session_present) == (Reason.SUCCESS, False)


async def test_a_v3_session_lasts_as_long_as_the_setting_says(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(session_expiry=50)) as house:
        (await house.lasting("r", 4)).drop()
        house.clock.advance(50)
        assert await house.broker.sweep() == 1
    async with open_house(settings=Settings(session_expiry=0)) as house:
        (await house.lasting("r", 4)).drop()
        house.clock.advance(1_000_000)
        assert await house.broker.sweep() == 0


async def test_a_client_may_change_its_expiry_when_it_says_goodbye_but_not_from_none(house: House) -> None:
    leaving = await house.client("a", clean_start=False, session_expiry=10)
    leaving.say(Disconnect(session_expiry=500))
    await leaving.closed()
    house.clock.advance(499)
    assert await house.broker.sweep() == 0
    ending = await house.client("a", clean_start=False, session_expiry=10)
    ending.say(Disconnect(session_expiry=0))
    await ending.closed()
    assert house.broker.session_count == 0
    cheating = await house.client("b", session_expiry=0)
    cheating.say(Disconnect(session_expiry=5))
    assert (await cheating.get(Disconnect)).reason == Reason.PROTOCOL_ERROR
    assert house.broker.session_count == 0


async def test_the_server_may_shorten_an_expiry_and_says_so(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(max_session_expiry=60)) as house:
        answer = await house.speaker().connect("r", clean_start=False, session_expiry=3_600)
        assert answer.session_expiry == 60
        answer = await house.speaker().connect("s", clean_start=False, session_expiry=30)
        assert answer.session_expiry is None


async def test_everything_of_a_session_is_there_after_a_restart(open_house: OpenHouse) -> None:
    async with open_house() as house:
        clock = house.clock
        reader = await house.lasting("r", username="me")
        await reader.subscribe("t/#", 2, identifier=7, retain_as_published=True)
        await reader.subscribe("gone", 1)
        await reader.unsubscribe("gone")
        reader.drop()
        writer = await house.lasting("w")
        writer.publish("t/1", b"1", 1)
        await writer.get(Puback)
        writer.publish("t/2", b"2", 2)
        await writer.get(Pubrec)
    async with open_house(clock=clock) as house:
        (subscription,) = house.broker.subscriptions("r")
        assert (subscription.filter, subscription.qos, subscription.identifier) == ("t/#", 2, 7)
        reader = house.speaker()
        assert (await reader.connect("r", clean_start=False, username="me")).session_present
        found = await reader.get_all(Publish, 2)
        assert [(p.topic, p.payload, p.qos, p.subscription_ids) for p in found] == [
            ("t/1", b"1", 1, (7,)),
            ("t/2", b"2", 2, (7,)),
        ]
        writer = await house.client("w", clean_start=False)
        writer.say(Publish("t/2", b"2", 2, dup=True, packet_id=2))
        assert await writer.get(Pubrec) == Pubrec(2)
        await reader.nothing()


async def test_a_subscription_that_a_user_may_no_longer_have_is_gone_at_the_next_connect(
    open_house: OpenHouse,
) -> None:
    hooks = EverybodyMay()
    async with open_house(hooks=hooks) as house:
        reader = await house.lasting("r", username="me")
        await reader.subscribe("secret", 1)
        await reader.subscribe("open", 1)
        reader.drop()
        hooks.denied.add(("me", Access.SUBSCRIBE, "secret"))
        again = await house.client("r", clean_start=False, username="me")
        writer = await house.client("w")
        writer.publish("secret", b"", 1)
        writer.publish("open", b"", 1)
        assert (await again.get(Publish)).topic == "open"
        assert [s.filter for s in house.broker.subscriptions("r")] == ["open"]


async def test_a_queued_message_that_a_user_may_no_longer_have_is_not_delivered(
    open_house: OpenHouse,
) -> None:
    hooks = EverybodyMay()
    async with open_house(hooks=hooks) as house:
        reader = await house.lasting("r", username="me")
        await reader.subscribe("#", 1)
        reader.drop()
        writer = await house.client("w")
        for topic in ("secret", "open"):
            writer.publish(topic, b"", 1)
            await writer.get(Puback)
        hooks.denied.add(("me", Access.RECEIVE, "secret"))
        again = await house.client("r", clean_start=False, username="me")
        assert (await again.get(Publish)).topic == "open"
        assert house.broker.counters.drops["not_allowed"] == 1


async def test_an_empty_client_id_is_given_one_where_the_version_allows_it(open_house: OpenHouse) -> None:
    async with open_house() as house:
        answer = await house.speaker().connect("")
        assert answer.assigned_client_id
        assert (await house.speaker(4).connect("", clean_start=True)).reason == Reason.SUCCESS
        refused = house.speaker(4)
        assert (await refused.connect("", clean_start=False)).reason == Reason.CLIENT_ID_NOT_VALID
        await refused.closed()
    async with open_house(settings=Settings(empty_client_id=False)) as house:
        assert (await house.speaker().connect("")).reason == Reason.CLIENT_ID_NOT_VALID


async def test_two_connects_of_one_client_id_at_the_same_time_leave_one_of_them(house: House) -> None:
    speakers = [house.speaker() for _ in range(20)]
    for speaker in speakers:
        speaker.say(Connect(client_id="r", clean_start=False, session_expiry=100))
    for speaker in speakers[:-1]:
        await speaker.closed()
    assert (await speakers[-1].get(Connack)).reason == Reason.SUCCESS
    assert house.broker.session_count == 1
    assert house.broker.connected == 1


async def test_what_arrives_behind_a_connect_is_handled_when_the_client_is_in(house: House) -> None:
    reader = await house.client("r")
    await reader.subscribe("t")
    eager = house.speaker()
    eager.say(Connect(client_id="e"), Publish("t", b"1"), Publish("t", b"2"))
    eager.say(Publish("t", b"3"))
    await eager.get(Connack)
    assert [p.payload for p in await reader.get_all(Publish, 3)] == [b"1", b"2", b"3"]


async def test_stopping_tells_5_0_clients_and_closes_everyone(open_house: OpenHouse) -> None:
    async with open_house() as house:
        new, old = await house.client("new"), await house.client("old", 4)
    assert (await new.get(Disconnect)).reason == Reason.SERVER_SHUTTING_DOWN
    assert new.wire.is_closed
    assert old.wire.is_closed


async def test_an_operator_can_disconnect_a_client_and_delete_a_session(house: House) -> None:
    reader = await house.lasting("r")
    await reader.subscribe("t", 1)
    assert await house.broker.kick("r")
    assert (await reader.get(Disconnect)).reason == Reason.ADMINISTRATIVE_ACTION
    assert not await house.broker.kick("r")
    assert house.broker.session_count == 1
    assert await house.broker.delete_session("r")
    assert not await house.broker.delete_session("r")
    assert house.broker.session_count == house.broker.subscription_count == 0
    assert (await house.speaker().connect("r", clean_start=False)).session_present is False
