"""One session per user, the newest; and what one connection, and one user, may ask of us at once."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec
import pytest
from websockets.exceptions import InvalidStatus

from holdfast.chat import actions
from holdfast.settings.chat import Rate
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.chat.obstacle import Obstacle
from tests.chat.phone import Phone

SEVERAL = msgspec.structs.replace(QUICK, single_session=False)


async def test_the_newest_connection_stays_and_the_older_is_told(house: House) -> None:
    ann, bob = await house.users(2)
    first = house.phone(ann)
    await first.log_in()
    async with house.phone(bob) as at_bob, house.phone(ann) as second:
        assert (await first.hear("ERROR"))["reason"] == "kicked"
        assert await first.until_closed() == 1008
        await at_bob.say(ann, "hello")
        await second.hear_messages(1)
        assert first.messages == []


async def test_of_many_that_come_at_once_one_stays(house: House) -> None:
    ann = await house.user()
    phones = [house.phone(ann) for _ in range(12)]

    async def come(phone: Phone) -> None:
        await phone.open()
        await phone.send({"type": "AUTH", "token": phone.token})

    await asyncio.gather(*(come(phone) for phone in phones))
    await until(lambda: sum(phone.closed.is_set() for phone in phones) == 11)
    (left,) = [phone for phone in phones if not phone.closed.is_set()]
    await left.settled()
    assert house.room.gateway.online.of(ann)[0].is_open
    for phone in phones:
        if phone is not left:
            assert phone.heard[-1].get("reason") == "kicked"
            assert phone.close_code == 1008
    await left.close()


async def test_across_processes_the_newest_stays_with_no_redis(open_house: OpenHouse) -> None:
    if open_house.backend == "sqlite":
        return
    async with open_house() as one, open_house() as two:
        ann = await one.user()
        for old, new in ((one, two), (two, one)):
            first = old.phone(ann)
            await first.log_in()
            async with new.phone(ann) as second:
                assert (await first.hear("ERROR"))["reason"] == "kicked"
                assert await first.until_closed() == 1008
                await second.settled()


async def test_where_several_sessions_are_allowed_each_gets_every_message(open_house: OpenHouse) -> None:
    async with open_house(SEVERAL) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        async with house.phone(ann) as at_ann, house.phone(bob) as desk, house.phone(bob) as pocket:
            for number in range(10):
                await at_ann.say(bob, f"{number}")
                await at_ann.say_to_group(group, f"g{number}")
            for phone in (desk, pocket):
                await phone.hear_messages(20)
                for kind in ("SINGLE_CHAT", "GROUP_CHAT"):
                    seqs = [m["msgSeq"] for m in phone.messages if m["type"] == kind]
                    assert seqs == [f"{n}" for n in range(1, 11)]
        async with house.phone(bob) as phone:
            await phone.settled()
            assert phone.messages == [], "delivered to some device"


async def test_whoever_sends_too_many_frames_is_closed(open_house: OpenHouse) -> None:
    rate = Rate(connection=0, connection_burst=10, user=1_000, user_burst=1_000)
    async with open_house(msgspec.structs.replace(QUICK, rate=rate)) as house:
        ann = await house.user()
        async with house.phone(ann) as at_ann:
            for _ in range(20):
                await at_ann.send({"type": "PONG"})
            assert (await at_ann.hear("ERROR"))["reason"] == "too_many_requests"
            assert await at_ann.until_closed() == 1008


async def test_a_users_messages_are_counted_over_all_connections(open_house: OpenHouse) -> None:
    rate = Rate(connection=1_000, connection_burst=1_000, user=0, user_burst=10)
    async with open_house(msgspec.structs.replace(SEVERAL, rate=rate)) as house:
        ann, bob = await house.users(2)
        phones = [house.phone(ann) for _ in range(3)]
        await asyncio.gather(*(phone.log_in() for phone in phones))
        for number in range(10):
            assert (await phones[number % 3].say(bob, "x"))["type"] == "ACK"
        for phone in phones:
            await phone.settled()  # is no message
        refused = await phones[0].say(bob, "x", "over")
        assert refused["reason"] == "too_many_requests"
        await asyncio.gather(*(phone.close() for phone in phones))


async def test_acknowledgements_that_we_asked_for_are_not_counted(open_house: OpenHouse) -> None:
    rate = Rate(connection=0, connection_burst=5, user=1_000, user_burst=1_000)
    async with open_house(msgspec.structs.replace(QUICK, rate=rate)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        for number in range(60):
            await house.save(ann, group, f"{number}")
        async with house.phone(bob) as at_bob:
            messages = await at_bob.hear_messages(60)
            for message in messages:
                await at_bob.ack(message, "read")
            await until(lambda: _read(house, group, bob, 60))
            for _ in range(20):
                await at_bob.ack(messages[0], "read")
            assert (await at_bob.hear("ERROR"))["reason"] == "too_many_requests", "nobody asked for these"


async def _read(house: House, conversation: int, user: int, seq: int) -> bool:
    return (await house.cursor_in(conversation, user))[1] == seq


async def test_more_frames_than_may_wait_are_refused_and_the_others_answered_in_order(
    open_house: OpenHouse,
) -> None:
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann:
            await at_ann.say(bob, "first")
            obstacle.only = actions.send
            obstacle.opened.clear()
            for number in range(80):
                frame = {"type": "SINGLE_CHAT", "to": str(bob), "clientMsgId": f"k{number}", "body": "x"}
                await at_ann.send(frame)
            await until(lambda: len([f for f in at_ann.heard if f["type"] == "ERROR"]) == 16)
            obstacle.opened.set()
            await until(lambda: len([f for f in at_ann.heard if f.get("ackType") == "saved"]) == 65)
            answers = [f for f in at_ann.heard if str(f.get("clientMsgId", "")).startswith("k")]
            said = Counter(f.get("reason", f["type"]) for f in answers)
            assert said == {"ACK": 64, "server_busy": 16}
            acks = [f for f in answers if f["type"] == "ACK"]
            assert [f["clientMsgId"] for f in acks] == [f"k{n}" for n in range(64)]
            assert [f["msgSeq"] for f in acks] == [f"{n}" for n in range(2, 66)]
            busy = [f["clientMsgId"] for f in answers if f["type"] == "ERROR"]
            assert busy == [f"k{n}" for n in range(64, 80)]


async def test_an_idle_client_is_pinged_and_a_silent_one_closed(open_house: OpenHouse) -> None:
    chat = msgspec.structs.replace(QUICK, ping_seconds=0.5, silence_seconds=5.0)
    async with open_house(chat) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as silent, house.phone(bob) as talking:
            await silent.hear("PING")
            while not silent.closed.is_set():
                await talking.send({"type": "PONG"})
                await asyncio.sleep(0.1)
            assert await silent.until_closed() == 1001
            await talking.settled()


async def test_clients_are_told_when_the_server_goes(open_house: OpenHouse) -> None:
    async with open_house() as house:
        ann = await house.user()
        at_ann = house.phone(ann)
        await at_ann.log_in()
        stranger = await Phone(house.ws).open()
    assert await at_ann.until_closed() == 1001
    assert await stranger.until_closed() == 1001


async def test_more_connections_than_allowed_are_refused(sqlite_open: OpenHouse) -> None:
    async with sqlite_open(msgspec.structs.replace(QUICK, max_connections=2, auth_seconds=60)) as house:
        phones = [await Phone(house.ws).open() for _ in range(2)]
        with pytest.raises(InvalidStatus, match="503"):
            await Phone(house.ws).open()
        await phones[0].close()
        await until(lambda: len(house.room.gateway.online.connections) == 1)
        ann = await house.user()
        async with house.phone(ann):
            pass
        await phones[1].close()
