"""One person to another: saved, delivered, received, read."""

from __future__ import annotations

import asyncio

import pytest
from websockets.exceptions import InvalidStatus

from tests.chat.conftest import House, OpenHouse, until
from tests.chat.phone import Phone


async def test_a_message_is_saved_and_reaches_its_receiver(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        ack = await at_ann.say(bob, "hello")
        assert (ack["ackType"], ack["msgSeq"]) == ("saved", "1")
        message = await at_bob.hear("SINGLE_CHAT")
        assert message["body"] == "hello"
        assert (message["from"], message["to"]) == (str(ann), str(bob))
        assert (message["serverMsgId"], message["msgSeq"]) == (ack["serverMsgId"], "1")
        assert message["msgType"] == "TEXT"
        assert message["ts"] == ack["ts"]


async def test_what_was_sent_to_somebody_who_is_away_comes_when_they_are_back(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann:
        for number in range(5):
            await at_ann.say(bob, f"{number}")
        async with house.phone(bob) as at_bob:
            await at_bob.hear_messages(5)
            assert at_bob.bodies == ["0", "1", "2", "3", "4"]
            await until(lambda: _is(house, bob, ann, (5, 0)))
        async with house.phone(bob) as at_bob:
            await at_bob.settled()
            assert at_bob.messages == []


async def test_the_sender_hears_that_its_message_was_received_and_read(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        ack = await at_ann.say(bob, "hello")
        message = await at_bob.hear("SINGLE_CHAT")
        delivered = await at_ann.hear(lambda f: f.get("ackType") == "delivered")
        assert delivered["serverMsgId"] == ack["serverMsgId"]
        assert (delivered["msgSeq"], delivered["from"], delivered["to"]) == ("1", str(bob), str(ann))
        await at_bob.ack(message, "ACK_READ")
        read = await at_ann.hear(lambda f: f.get("ackType") == "read")
        assert (read["serverMsgId"], read["msgSeq"]) == (ack["serverMsgId"], "1")
        assert await house.cursor_of(bob, ann) == (1, 1)


async def test_messages_outlive_the_process(open_house: OpenHouse) -> None:
    async with open_house() as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann:
            first = await at_ann.say(bob, "before", "key")
    async with open_house() as house, house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        again = await at_ann.say(bob, "before", "key")
        assert {**again, "ts": 0} == {**first, "ts": 0}
        second = await at_ann.say(bob, "after")
        assert second["msgSeq"] == "2"
        await at_bob.hear_messages(2)
        assert at_bob.bodies == ["before", "after"]


async def test_ones_own_messages_never_come_back_and_never_hold_the_cursor_up(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        await at_ann.say(bob, "one")
        await at_bob.hear_messages(1)
        await at_bob.say(ann, "two")
        await at_bob.say(ann, "three")
        await at_ann.hear_messages(2)
        await until(lambda: _is(house, bob, ann, (3, 0)))
        await until(lambda: _is(house, ann, bob, (3, 0)))
        assert at_bob.bodies == ["one"]
    async with house.phone(ann) as at_ann:
        await at_ann.settled()
        assert at_ann.messages == []


async def _is(house: House, user: int, peer: int, cursors: tuple[int, int]) -> bool:
    return await house.cursor_of(user, peer) == cursors


async def test_an_address_that_is_not_the_rooms_is_not_found(house: House) -> None:
    phone = Phone(house.ws)
    phone.url = phone.url.replace("/ws", "/other")
    with pytest.raises(InvalidStatus, match="404"):
        await phone.open()


async def test_an_upgrade_with_more_than_one_token_is_taken(sqlite_house: House) -> None:
    """As Firefox sends it."""
    host, _, port = sqlite_house.ws.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert b"101" in await reader.readline()
    writer.close()


async def test_a_ping_of_the_protocol_is_answered(sqlite_house: House) -> None:
    ann = await sqlite_house.user()
    async with sqlite_house.phone(ann) as at_ann:
        assert at_ann.ws is not None
        async with asyncio.timeout(20):
            await (await at_ann.ws.ping(b"here"))
