"""What an acknowledgement means: it leaves after the commit that holds what it says, and not before."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.broker.packets import (
    Disconnect,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)
from holdfast.broker.store import reads
from holdfast.errors import OutcomeUnknown
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import PATIENCE, House, held_commits, settle


async def batch_count(house: House) -> int:
    await house.broker.journal.drain()
    return house.broker.journal.committed


async def test_a_message_for_a_client_that_is_away_is_acknowledged_after_its_commit(house: House) -> None:
    reader = await house.lasting("r")
    await reader.subscribe("t", 2)
    reader.drop()
    writer = await house.client("w")
    async with held_commits(house.broker.db):
        writer.publish("t", b"", 1)
        writer.publish("t", b"", 2)
        await writer.nothing()
    assert await writer.get(Puback) == Puback(1)
    assert await writer.get(Pubrec) == Pubrec(2)


async def test_a_qos_1_message_to_a_connected_client_is_delivered_before_its_commit(house: House) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 1)
    async with held_commits(house.broker.db):
        writer.publish("t", b"now", 1)
        assert (await reader.get(Publish)).payload == b"now"
        await writer.nothing()
    assert await writer.get(Puback) == Puback(1)


async def test_a_qos_1_message_that_everyone_acknowledged_is_acknowledged_and_never_written(
    house: House,
) -> None:
    readers = [await house.lasting(f"r{n}") for n in range(3)]
    for reader in readers:
        await reader.subscribe("t", 1)
    writer = await house.client("w")
    before = await batch_count(house)
    async with held_commits(house.broker.db):
        writer.publish("t", b"quick", 1)
        for reader in readers:
            await writer.nothing()
            packet = await reader.get(Publish)
            reader.say(Puback(packet.packet_id))
        assert await writer.get(Puback) == Puback(1)
    rows = await house.broker.db.read(lambda view: view.backend and house.broker.queued_count)
    assert rows == 0
    assert await batch_count(house) <= before + 1  # the batch number passes, and nothing is written for it


async def test_a_qos_2_message_is_sent_after_its_commit_and_released_after_the_next(house: House) -> None:
    reader, writer = await house.lasting("r"), await house.lasting("w")
    await reader.subscribe("t", 2)
    async with held_commits(house.broker.db):
        writer.publish("t", b"", 2)
        await reader.nothing()
        await writer.nothing()
    await writer.get(Pubrec)
    packet = await reader.get(Publish)
    async with held_commits(house.broker.db):
        reader.say(Pubrec(packet.packet_id))
        await reader.nothing()
    assert await reader.get(Pubrel) == Pubrel(packet.packet_id)
    async with held_commits(house.broker.db):
        writer.say(Pubrel(1))
        await writer.nothing()
    assert await writer.get(Pubcomp) == Pubcomp(1)


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_message_from_the_store_is_known_there_as_sent_before_it_is(house: House, qos: int) -> None:
    reader, writer = await house.lasting("r"), await house.client("w", 4)
    await reader.subscribe("t", 2)
    reader.drop()
    for _ in range(3):
        writer.publish("t", b"", qos)
    await writer.get_all(Puback if qos == 1 else Pubrec, 3)
    reader = await house.client("r", clean_start=False)
    packet = await reader.get(Publish)
    page = await house.broker.db.read(reads.session_page, 0)
    assert page.sessions[0].sent >= packet.packet_id


@pytest.mark.parametrize("is_stored_first", [False, True])
@pytest.mark.parametrize("qos", [1, 2])
async def test_what_was_sent_before_a_crash_comes_again_with_dup(
    open_house: OpenHouse, qos: int, is_stored_first: bool
) -> None:
    async with open_house() as house:
        clock = house.clock
        reader, writer = await house.lasting("r", receive_maximum=1), await house.client("w", 4)
        await reader.subscribe("t", 2)
        if is_stored_first:
            reader.drop()
        for number in range(3):
            writer.publish("t", b"%d" % number, qos)
        await writer.get_all(Puback if qos == 1 else Pubrec, 3)
        if is_stored_first:
            reader = await house.client("r", clean_start=False, session_expiry=99, receive_maximum=1)
        first = await reader.get(Publish)
        reader.say(Puback(first.packet_id) if qos == 1 else Pubrec(first.packet_id))
        if qos == 2:
            await reader.get(Pubrel)
            reader.say(Pubcomp(first.packet_id))
        second = await reader.get(Publish)  # it waited for the first, in memory
        assert (second.payload, second.dup) == (b"1", False)
        await house.broker.journal.drain()
        await house.crash()
    async with open_house(clock=clock) as house:
        reader = await house.client("r", clean_start=False, session_expiry=99)
        again = await reader.get(Publish)
        assert (again.payload, again.packet_id, again.dup) == (b"1", second.packet_id, True)


async def test_a_message_that_is_received_before_it_was_sent_again_is_released_after_its_commit(
    house: House,
) -> None:
    """Otherwise a crash in between brings it again to a client that has forgotten its packet id."""
    reader, writer = await house.lasting("r", receive_maximum=2), await house.client("w")
    await reader.subscribe("t", 2)
    writer.publish("t", b"1", 2)
    writer.publish("t", b"2", 2)
    await reader.get_all(Publish, 2)
    reader.drop()
    reader = await house.client("r", clean_start=False, session_expiry=99, receive_maximum=1)
    assert (await reader.get(Publish)).dup
    reader.say(Pubrec(1))
    await reader.get(Pubrel)
    async with held_commits(house.broker.db):
        reader.say(Pubrec(2), Pubcomp(1))  # it knows the second one, which waits for the first
        await reader.nothing()
    assert [p.packet_id for p in await reader.get_all(Pubrel, 2)] == [
        2,
        2,
    ]  # the answer, and its turn in the queue
    reader.say(Pubcomp(2))
    writer.publish("t", b"3", 2)
    assert (await reader.get(Publish)).payload == b"3"


async def test_a_message_that_is_received_before_it_was_sent_again_does_not_stop_its_queue(
    house: House,
) -> None:
    reader, writer = await house.lasting("r"), await house.client("w")
    await reader.subscribe("t", 2)
    writer.publish("t", b"1", 2)
    await reader.get(Publish)
    reader.drop()
    reader = house.speaker()
    reader.wire.stuck, reader.wire.buffered = True, 1024 * 1024  # it is read back, and cannot be sent yet
    await reader.connect("r", clean_start=False, session_expiry=99)
    session = house.broker.sessions_by_id["r"]
    async with asyncio.timeout(PATIENCE):
        while not session.outgoing.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    async with held_commits(house.broker.db):
        reader.say(Pubrec(1))
        reader.wire.stuck, reader.wire.buffered = False, 0
        reader.peer.resume_writing()
        await reader.nothing()
    await reader.get_all(Pubrel, 2)  # the answer, and its turn in the queue
    reader.say(Pubcomp(1))
    writer.publish("t", b"2", 2)
    assert (await reader.get(Publish)).payload == b"2"
    assert house.broker.queued_count == 1


async def test_a_repeated_qos_2_message_waits_for_the_commit_of_the_first(house: House) -> None:
    writer = await house.lasting("w")
    async with held_commits(house.broker.db):
        writer.publish("t", b"", 2)
        writer.say(Publish("t", b"", 2, dup=True, packet_id=1))
        await writer.nothing()
        writer.drop()
    writer = await house.client("w", clean_start=False)
    async with held_commits(house.broker.db):
        writer.say(Pubrel(1), Pubrel(1))
        await writer.nothing()
    assert [p.reason for p in await writer.get_all(Pubcomp, 2)] == [0, 0x92]


async def test_acknowledgements_leave_in_the_order_of_the_messages(house: House) -> None:
    away, here, writer = await house.lasting("away"), await house.client("here"), await house.client("w")
    await away.subscribe("kept", 1)
    away.drop()
    await here.subscribe("quick", 1)
    writer.publish("kept", b"", 1)
    writer.publish("quick", b"", 1)
    await writer.nothing()
    assert [p.packet_id for p in await writer.get_all(Puback, 2)] == [1, 2]


async def test_a_message_that_no_lasting_session_needs_touches_no_disk(house: House) -> None:
    clean, lasting, writer = await house.client("c"), await house.lasting("l"), await house.client("w")
    await clean.subscribe("t", 2)
    await lasting.subscribe("t", 0)
    before = await batch_count(house)
    async with held_commits(house.broker.db):
        writer.publish("t", b"0", 0)
        writer.publish("t", b"1", 1)
        writer.publish("t", b"2", 2)
        assert await writer.get(Puback) == Puback(1)
        assert await writer.get(Pubrec) == Pubrec(2)
        assert len(await clean.get_all(Publish, 3)) == len(await lasting.get_all(Publish, 3))
    assert await batch_count(house) == before


async def test_subscribing_and_unsubscribing_are_answered_after_their_commits(house: House) -> None:
    reader = await house.lasting("r")
    async with held_commits(house.broker.db):
        reader.say(Subscribe(1, (Subscription("a", 1),)))
        reader.say(Unsubscribe(2, ("a",)))
        await reader.nothing()
    await reader.get(Suback)
    await reader.get(Unsuback)


async def test_a_retained_message_is_acknowledged_after_its_commit(house: House) -> None:
    writer = await house.client("w")
    async with held_commits(house.broker.db):
        writer.publish("t", b"", 0, retain=True)
        writer.publish("t", b"x", 1, retain=True)
        await writer.nothing()
    await writer.get(Puback)


async def test_a_session_is_off_the_disk_before_the_client_that_discards_it_is_let_in(house: House) -> None:
    (await house.lasting("r")).drop()
    speaker = house.speaker()
    async with held_commits(house.broker.db):
        connecting = asyncio.create_task(speaker.connect("r", clean_start=True))
        await settle()
        assert not speaker.wire.sent
    await connecting


async def test_a_session_that_lasts_is_on_disk_before_its_client_is_let_in(house: House) -> None:
    speaker = house.speaker()
    async with held_commits(house.broker.db):
        connecting = asyncio.create_task(speaker.connect("r", clean_start=False, session_expiry=9))
        await settle()
        assert not speaker.wire.sent
        assert not connecting.done()
    await connecting


async def test_a_commit_that_fails_acknowledges_nobody_and_the_message_is_written_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await house.lasting("r")
    await reader.subscribe("t", 2)
    reader.drop()
    writer = await house.lasting("w")
    await house.broker.journal.drain()
    write, failures = house.broker.db.write, 2

    async def failing(action: object, *args: object) -> object:
        nonlocal failures
        if failures:
            failures -= 1
            if not failures:
                await write(action, *args)  # type: ignore[arg-type]  # it took place, and nobody knows
            raise OutcomeUnknown
        return await write(action, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(house.broker.db, "write", failing)
    writer.publish("t", b"1", 1)
    writer.publish("t", b"2", 2)
    await writer.get(Disconnect)
    await writer.closed()
    writer = await house.client("w", clean_start=False)
    writer.say(Publish("t", b"2", 2, dup=True, packet_id=2))
    assert await writer.get(Pubrec) == Pubrec(2)
    reader = await house.client("r", clean_start=False)
    assert [p.payload for p in await reader.get_all(Publish, 2)] == [b"1", b"2"]
    await reader.nothing()


async def test_relaxed_durability_acknowledges_at_once_and_writes_soon(open_house: OpenHouse) -> None:
    async with open_house(settings=Settings(durability="relaxed")) as house:
        clock = house.clock
        reader = await house.lasting("r")
        await reader.subscribe("t", 2)
        reader.drop()
        writer = await house.lasting("w")
        async with held_commits(house.broker.db):
            writer.publish("t", b"1", 1)
            assert await writer.get(Puback) == Puback(1)
            writer.publish("t", b"2", 2)
            assert await writer.get(Pubrec) == Pubrec(2)
    async with open_house(clock=clock) as house:
        reader = await house.client("r", clean_start=False)
        assert len(await reader.get_all(Publish, 2)) == 2


@pytest.mark.parametrize("is_taken_over", [False, True])
async def test_with_relaxed_durability_a_client_that_is_back_at_once_gets_nothing_twice(
    open_house: OpenHouse, is_taken_over: bool
) -> None:
    async with open_house(settings=Settings(durability="relaxed")) as house:
        reader, writer = await house.lasting("r"), await house.client("w")
        await reader.subscribe("t", 2)
        for number in range(3):
            writer.publish("t", b"%d" % number, 2)
        await reader.get_all(Publish, 3)
        await house.broker.journal.drain()
        reader.say(Pubrec(2))
        await reader.get(Pubrel)
        reader.say(Pubcomp(2))
        if not is_taken_over:
            reader.drop()
        reader = await house.client("r", clean_start=False, session_expiry=99)
        assert [packet.payload for packet in await reader.get_all(Publish, 2)] == [b"0", b"2"]


async def test_with_relaxed_durability_a_client_that_is_back_at_once_gets_what_waited_for_it(
    open_house: OpenHouse,
) -> None:
    async with open_house(settings=Settings(durability="relaxed")) as house:
        reader, writer = await house.lasting("r", receive_maximum=1), await house.client("w")
        await reader.subscribe("t", 2)
        for number in range(3):
            writer.publish("t", b"%d" % number, 1 + number % 2)
        await reader.get(Publish)
        reader.drop()
        reader = await house.client("r", clean_start=False, session_expiry=99)
        assert [packet.payload for packet in await reader.get_all(Publish, 3)] == [b"0", b"1", b"2"]


async def test_a_payload_is_stored_once_however_many_queues_hold_it(house: House) -> None:
    from holdfast.store import Query

    for number in range(3):
        reader = await house.lasting(f"r{number}")
        await reader.subscribe("t", 1)
        reader.drop()
    writer = await house.client("w")
    writer.publish("t", b"payload", 1)
    await writer.get(Puback)
    stored = Query(int, "SELECT count(*) FROM broker_message")
    inline = Query(int, "SELECT count(payload) FROM broker_queue")
    assert await house.broker.db.read(lambda view: (view.one(stored), view.one(inline))) == (1, 0)
    for number in range(3):
        reader = await house.client(f"r{number}", clean_start=False)
        packet = await reader.get(Publish)
        reader.say(Puback(packet.packet_id))
    await house.broker.journal.drain()
    assert await house.broker.db.read(lambda view: view.one(stored)) == 0
