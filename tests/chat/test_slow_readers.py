"""A reader that stops reading: bounded memory, closed in time, its backlog complete when it comes back."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.chat.gateway.connection import Connection
from holdfast.settings.chat import Backpressure, Group
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.chat.deaf import Deaf, many

BODY = "x" * 4096
FRAME = 4096 + 400


def unsent(connection: Connection) -> int:
    return connection.transport.underlying_transport.get_write_buffer_size()


def of(house: House, user: int) -> Connection:
    (connection,) = house.room.gateway.online.of(user)
    return connection


async def talk_until_unwritable(house: House, sender: int, group: int, connection: Connection) -> int:
    said = 0
    while not connection.unwritable:
        await house.save(sender, group, BODY)
        said += 1
        assert said < 5_000, "the kernel takes everything"
    return said


async def test_a_reader_that_stops_is_closed_after_three_seconds_with_its_backlog_kept(
    open_house: OpenHouse,
) -> None:
    async with open_house() as house:
        ann, bob, cid = await house.users(3)
        group = await house.group(ann, bob, cid)
        deaf = Deaf(house.ws, house.token(bob))
        await deaf.log_in()
        connection = of(house, bob)
        async with house.phone(cid) as quick:
            said = await talk_until_unwritable(house, ann, group, connection)
            loop = asyncio.get_running_loop()
            since = loop.time()
            marks = Backpressure()
            for _ in range(50):
                await house.save(ann, group, BODY)
                assert unsent(connection) <= marks.high + FRAME
            await until(lambda: not connection.is_open)
            assert 2.5 <= loop.time() - since <= 20.0
            await until(lambda: not connection.is_connected)
            assert len(await quick.hear_messages(said + 50)) == said + 50, "nobody else waits for it"
        deaf.close()
        async with house.phone(bob) as back:
            messages = await back.hear_messages(said + 50)
            assert [int(m["msgSeq"]) for m in messages] == list(range(1, said + 51))


async def test_a_reader_that_reads_on_below_the_mark_gets_the_rest_in_order(sqlite_open: OpenHouse) -> None:
    async with sqlite_open(msgspec.structs.replace(QUICK, window=100_000)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        slow = await house.phone(bob, acks=False).open(receive_buffer=4_096)
        await slow.log_in()
        assert slow.ws is not None
        slow.ws.transport.pause_reading()
        connection = of(house, bob)
        said = await talk_until_unwritable(house, ann, group, connection)
        for _ in range(300):
            await house.save(ann, group, BODY)
        slow.ws.transport.resume_reading()
        messages = await slow.hear_messages(said + 300)
        assert [int(m["msgSeq"]) for m in messages] == list(range(1, said + 301))
        assert connection.is_open
        await slow.close()


@pytest.mark.parametrize("critical", ["kicked", "call"])
async def test_a_critical_frame_that_cannot_be_written_closes_at_once(
    sqlite_open: OpenHouse, critical: str
) -> None:
    async with sqlite_open() as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        deaf = Deaf(house.ws, house.token(bob))
        await deaf.log_in()
        connection = of(house, bob)
        await talk_until_unwritable(house, ann, group, connection)
        assert connection.is_open
        if critical == "kicked":
            async with house.phone(bob):
                pass
        else:
            async with house.phone(ann) as at_ann:
                await at_ann.send({"type": "CALL_INVITE", "to": str(bob)})
                await at_ann.hear("CALL_INVITE_OK")
        assert not connection.is_open
        await until(lambda: not connection.is_connected)
        deaf.close()


async def test_messages_are_buffered_above_the_mark_if_the_operator_says_so(sqlite_open: OpenHouse) -> None:
    marks = Backpressure(low=1_000, high=2_000, drop_when_unwritable=False)
    async with sqlite_open(msgspec.structs.replace(QUICK, backpressure=marks)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        deaf = Deaf(house.ws, house.token(bob))
        await deaf.log_in()
        connection = of(house, bob)
        await talk_until_unwritable(house, ann, group, connection)
        before = unsent(connection)
        for _ in range(10):
            await house.save(ann, group, BODY)
        assert unsent(connection) > before + 10 * 4096
        deaf.close()


async def test_a_client_that_asks_and_asks_and_reads_nothing_is_closed(sqlite_open: OpenHouse) -> None:
    """Its answers are not kept for it without end, and pongs not at all."""
    async with sqlite_open() as house:
        bob = await house.user()
        deaf = Deaf(house.ws, house.token(bob))
        await deaf.log_in()
        connection = of(house, bob)

        async def ask(frame: dict[str, object]) -> None:
            while True:
                await deaf.send(frame)
                assert unsent(connection) < 2 * Backpressure().high + FRAME

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(ask({"type": "AUTH", "token": house.token(bob)}), 60)
        deaf.close()
        assert not connection.is_open


async def test_many_readers_that_stop_at_once_cost_a_bounded_amount_each(sqlite_open: OpenHouse) -> None:
    """`HOLDFAST_SLOW_READERS=2000` is the full length."""
    count = many()
    chat = msgspec.structs.replace(QUICK, window=100_000, group=Group(mode="push"))
    marks = Backpressure()
    async with sqlite_open(chat) as house:
        ann, *readers = await house.users(count + 1)
        group = await house.group(ann, *readers)
        deaf = [Deaf(house.ws, house.token(reader)) for reader in readers]
        for at in range(0, count, 50):
            await asyncio.gather(*(one.log_in() for one in deaf[at : at + 50]))
        connections = [of(house, reader) for reader in readers]
        said = 0
        loop = asyncio.get_running_loop()
        stopped: dict[Connection, float] = {}
        while any(connection.is_open for connection in connections):
            if said < 1_000:
                await house.save(ann, group, BODY)
                said += 1
            else:
                await asyncio.sleep(0.05)
            for connection in connections:
                if not connection.is_connected:
                    continue
                assert unsent(connection) <= marks.high + FRAME
                if connection.unwritable:
                    stopped.setdefault(connection, loop.time())
        assert len(stopped) == count, "each was full before it was closed"
        await until(lambda: not house.room.gateway.online.users)
        for one in deaf:
            one.close()
        for reader in (readers[0], readers[-1]):
            async with house.phone(reader) as back:
                messages = await back.hear_messages(said)
                assert [int(m["msgSeq"]) for m in messages] == list(range(1, said + 1))
