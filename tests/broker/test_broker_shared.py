"""Shared subscriptions: each message to one member, and to another when that one goes without acknowledging it."""

from __future__ import annotations

import pytest

from holdfast.broker.packets import Puback, Publish, Reason
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import House, Speaker, settle


async def members(house: House, *names: str, qos: int = 1, version: int = 5) -> list[Speaker]:
    found = []
    for name in names:
        member = await house.lasting(name, version)
        await member.subscribe("$share/g/t/#", qos)
        found.append(member)
    return found


def received(speaker: Speaker) -> list[bytes]:
    return [packet.payload for packet in speaker.read() if isinstance(packet, Publish)]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
async def test_members_take_turns_and_others_get_their_own(house: House, version: int, qos: int) -> None:
    first, second = await members(house, "a", "b", qos=qos, version=version)
    plain, writer = await house.client("p"), await house.client("w", 4)
    await plain.subscribe("t/1", qos)
    for number in range(6):
        writer.publish("t/1", b"%d" % number, qos)
    await house.broker.journal.drain()
    await settle()
    assert received(first) == [b"0", b"2", b"4"]
    assert received(second) == [b"1", b"3", b"5"]
    assert len(received(plain)) == 6


async def test_what_a_member_did_not_acknowledge_goes_to_another_when_it_goes(house: House) -> None:
    first, second = await members(house, "a", "b")
    writer = await house.client("w")
    for number in range(4):
        writer.publish("t/1", b"%d" % number, 1)
    await settle()
    first.say(Puback(1))
    assert received(first) == [b"0", b"2"]
    assert received(second) == [b"1", b"3"]
    first.drop()
    await settle()
    assert received(second)[2:] == [b"2"]
    await writer.get_all(Puback, 4)
    back = await house.client("a", clean_start=False)
    await back.nothing()


async def test_messages_wait_with_a_member_that_lasts_while_nobody_is_here(house: House) -> None:
    first, second = await members(house, "a", "b")
    first.drop()
    second.drop()
    writer = await house.client("w")
    for number in range(4):
        writer.publish("t/1", b"%d" % number, 1)
        await writer.get(Puback)
    found = []
    for name in "ab":
        back = await house.client(name, clean_start=False)
        await house.broker.journal.drain()
        found += [p.payload for p in await back.get_all(Publish, 2)]
    assert sorted(found) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("is_crashed", [False, True])
async def test_what_waits_for_a_member_goes_to_another_when_its_session_ends(
    open_house: OpenHouse, is_crashed: bool
) -> None:
    async with open_house() as house:
        clock = house.clock
        (member,) = await members(house, "a")
        member.drop()
        writer = await house.client("w")
        for number in range(3):
            writer.publish("t/1", b"%d" % number, 1)
            await writer.get(Puback)
        if is_crashed:
            await house.crash()
    async with open_house(clock=clock) as house:
        (other,) = await members(house, "b")
        await house.client("a", clean_start=True)
        assert [p.payload for p in await other.get_all(Publish, 3)] == [b"0", b"1", b"2"]
        await other.nothing()


async def test_a_qos_2_message_that_was_sent_stays_with_its_member(house: House) -> None:
    first, second = await members(house, "a", "b", qos=2)
    writer = await house.client("w", 4)
    writer.publish("t/1", b"mine", 2)
    assert (await first.get(Publish)).payload == b"mine"
    first.drop()
    await second.nothing()
    back = await house.client("a", clean_start=False)
    assert (await back.get(Publish)).dup
    await house.client("a", clean_start=True)
    await second.nothing()  # not even when the session ends [MQTT-4.8.2-5]


async def test_a_shared_subscription_has_no_retained_messages_and_no_no_local(house: House) -> None:
    house.broker.send("t/1", b"kept", retain=True)
    (member,) = await members(house, "a")
    await member.nothing()
    suback = await (await house.client("old", 4)).subscribe("$share//t", 1)
    assert suback.reasons[0] >= Reason.UNSPECIFIED
