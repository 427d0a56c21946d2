"""The rest of the process: publishing into the broker, and hearing what clients publish."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.broker.broker import Received
from holdfast.broker.packets import Disconnect, Puback, Pubcomp, Publish, Pubrec, Pubrel, Will
from holdfast.errors import InvalidField
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import House, held_commits, settle, until_read


class Ear:
    """A listener that keeps what it heard, waits while it is told to, and may fail."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.last: Received | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.fails = 0

    async def __call__(self, received: Received) -> None:
        await self.may_go_on.wait()
        if self.fails:
            self.fails -= 1
            raise ValueError("not now")
        self.last = received
        self.heard.append(received.payload)


async def test_the_process_publishes_and_can_wait_until_it_is_safe(house: House) -> None:
    reader, away = await house.client("r"), await house.lasting("a")
    await reader.subscribe("t", 1)
    await away.subscribe("t", 1)
    away.drop()
    house.broker.send("t", b"1")
    async with held_commits(house.broker.db):
        publishing = asyncio.create_task(house.broker.publish("t", b"2"))
        assert [p.payload for p in await reader.get_all(Publish, 2)] == [b"1", b"2"]
        assert not publishing.done()
    await publishing
    with pytest.raises(InvalidField):
        house.broker.send("a/#", b"")


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_publisher_is_acknowledged_when_the_listener_has_returned(house: House, qos: int) -> None:
    ear = Ear()
    house.broker.listen("up/#", ear)
    ear.may_go_on.clear()
    writer, reader = await house.lasting("w", username="me"), await house.client("r")
    await reader.subscribe("up/#")
    writer.publish("up/1", b"x", qos)
    await writer.nothing()
    await reader.nothing()
    ear.may_go_on.set()
    await writer.get(Puback if qos == 1 else Pubrec)
    assert (await reader.get(Publish)).payload == b"x"
    assert ear.last is not None
    assert (ear.last.topic, ear.last.client_id, ear.last.user, ear.last.qos) == ("up/1", "w", "me", qos)


async def test_what_a_listener_takes_goes_nowhere_else(house: House) -> None:
    ear = Ear()
    listening = house.broker.listen("up/#", ear, takes=True)
    writer, reader = await house.client("w"), await house.client("r")
    await reader.subscribe("up/#", 1)
    writer.publish("up/1", b"x", 1, retain=True)
    await writer.get(Puback)
    assert ear.heard == [b"x"]
    await reader.nothing()
    assert house.broker.retained_count == 0
    house.broker.send("up/1", b"ours")  # what the process says is not heard by itself
    assert (await reader.get(Publish)).payload == b"ours"
    assert ear.heard == [b"x"]
    listening.cancel()
    writer.publish("up/1", b"y", 1)
    assert (await reader.get(Publish)).payload == b"y"


@pytest.mark.parametrize("qos", [1, 2])
async def test_a_listener_that_fails_makes_the_publisher_send_again(house: House, qos: int) -> None:
    ear = Ear()
    house.broker.listen("up", ear, takes=True)
    ear.fails = 1
    writer = await house.lasting("w")
    for payload in (b"1", b"2"):
        writer.publish("up", payload, qos)
    await writer.get(Disconnect)
    await writer.closed()
    assert ear.heard == []
    again = await house.client("w", clean_start=False)
    for packet_id, payload in ((1, b"1"), (2, b"2")):
        again.say(Publish("up", payload, qos, dup=True, packet_id=packet_id))
    await again.get_all(Puback if qos == 1 else Pubrec, 2)
    assert ear.heard == [b"1", b"2"]


async def test_a_qos_2_message_is_heard_once_although_it_is_sent_again_meanwhile(house: House) -> None:
    ear = Ear()
    house.broker.listen("up", ear, takes=True)
    ear.may_go_on.clear()
    writer = await house.lasting("w")
    writer.publish("up", b"once", 2)
    await settle()
    writer.drop()
    again = await house.client("w", clean_start=False)
    again.say(Publish("up", b"once", 2, dup=True, packet_id=1))
    await again.nothing()
    ear.may_go_on.set()
    await again.get(Pubrec)
    again.say(Publish("up", b"once", 2, dup=True, packet_id=1))
    await again.get(Pubrec)
    again.say(Pubrel(1))
    await again.get(Pubcomp)
    assert ear.heard == [b"once"]


async def test_one_publishers_messages_are_heard_in_order_and_others_beside_them(house: House) -> None:
    beside: list[str] = []
    all_here = asyncio.Event()

    async def hear(received: Received) -> None:
        beside.append(f"{received.client_id}{received.payload.decode()}")
        if len(beside) == 3:
            all_here.set()
        await all_here.wait()

    house.broker.listen("up", hear)
    writers = [await house.client(name) for name in "abc"]
    for writer in writers:
        for number in range(3):
            writer.publish("up", b"%d" % number, 1)
    for writer in writers:
        await writer.get_all(Puback, 3)
    assert sorted(beside[:3]) == ["a0", "b0", "c0"]
    for name in "abc":
        assert [said for said in beside if said[0] == name] == [f"{name}{n}" for n in range(3)]


async def test_who_publishes_faster_than_it_is_heard_is_not_read_meanwhile(house: House) -> None:
    ear = Ear()
    house.broker.listen("up", ear)
    ear.may_go_on.clear()
    writer = await house.client("w")
    for _ in range(300):
        writer.publish("up", b"")
    assert not writer.wire.is_reading
    ear.may_go_on.set()
    await until_read(writer)
    assert len(ear.heard) >= 100


async def test_a_will_is_heard_like_a_message_of_its_client(house: House) -> None:
    ear = Ear()
    house.broker.listen("up", ear, takes=True)
    (await house.client("c", username="me", will=Will(topic="up", payload=b"bye"))).drop()
    await settle()
    assert ear.last is not None
    assert (ear.last.user, ear.last.payload, ear.last.identity) == ("me", b"bye", None)


async def test_a_message_a_listener_heard_and_the_id_it_came_with_are_on_disk_before_pubrec(
    open_house: OpenHouse,
) -> None:
    ear = Ear()
    async with open_house() as house:
        clock = house.clock
        house.broker.listen("up", ear, takes=True)
        writer = await house.lasting("w")
        async with held_commits(house.broker.db):
            writer.publish("up", b"x", 2)
            await writer.nothing()
        await writer.get(Pubrec)
        await house.crash()
    async with open_house(clock=clock) as house:
        house.broker.listen("up", ear, takes=True)
        writer = await house.client("w", clean_start=False)
        writer.say(Publish("up", b"x", 2, dup=True, packet_id=1))
        await writer.get(Pubrec)
        assert ear.heard == [b"x"]
