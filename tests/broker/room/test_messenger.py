"""What rooms tell and hear: the publisher waits for the room, in his order, and nobody else does."""

from __future__ import annotations

import asyncio

from holdfast.broker.packets import Puback, Publish
from holdfast.messenger import Heard, Messenger
from tests.broker.room.conftest import Home, OpenHome


class Ears:
    """A room that listens to the uplink of the ledger's topics in its place, and answers when it is let."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.under_way = 0
        self.most_under_way = 0
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.fails = False

    def open(self, messenger: Messenger) -> None:
        messenger.hear("user/+/up/#", self.hear)

    async def hear(self, message: Heard) -> None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.may_go_on.wait()
            if self.fails:
                raise RuntimeError("the room has a bad day")
            self.heard.append(message)
        finally:
            self.under_way -= 1

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.heard) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_the_publisher_is_acknowledged_when_the_room_has_heard_him(open_home: OpenHome) -> None:
    ears = Ears()
    async with open_home(ears.open) as home:
        ann = await home.user("ann")
        client = await home.client(ann, "phone")
        ears.may_go_on.clear()
        topic = f"user/{ann.id}/up/bill"
        await client.send(Publish(topic, b"one", 1, packet_id=1))
        await client.quiet()
        ears.may_go_on.set()
        await client.answer(Puback, packet_id=1, reason=0)
        assert ears.heard == [Heard(topic, b"one", ann.id)]
        assert await client.publish(topic, b"two", 2) == 0
        assert ears.heard[-1] == Heard(topic, b"two", ann.id)


async def test_what_a_room_takes_goes_to_nobody_else(open_home: OpenHome) -> None:
    ears = Ears()
    async with open_home(ears.open) as home:
        ann = await home.user("ann")
        client, other = await home.client(ann, "phone"), await home.client(ann, "tablet")
        await other.subscribed(f"user/{ann.id}/#", qos=1)
        assert await client.publish(f"user/{ann.id}/up/bill", b"x", 1, retain=True) == 0
        assert await client.publish(f"user/{ann.id}/else", b"y", 1) == 0
        await other.receive(f"user/{ann.id}/else", b"y", 1)


async def test_a_room_that_fails_leaves_the_message_unacknowledged_and_ends_the_connection(
    open_home: OpenHome,
) -> None:
    ears = Ears()
    async with open_home(ears.open) as home:
        ann = await home.user("ann")
        client, other = await home.client(ann, "phone"), await home.client(ann, "tablet")
        ears.fails = True
        await client.send(Publish(f"user/{ann.id}/up/bill", b"one", 1, packet_id=1))
        said = await client.closed()
        assert not isinstance(said, Puback)
        ears.fails = False
        assert await other.publish(f"user/{ann.id}/up/bill", b"two", 1) == 0
        assert [heard.payload for heard in ears.heard] == [b"two"]


async def test_one_publishers_messages_come_in_order_and_many_publishers_beside_each_other(
    open_home: OpenHome,
) -> None:
    ears = Ears()
    async with open_home(ears.open) as home:
        ann = await home.user("ann")
        clients = [await home.client(ann, f"c{number}") for number in range(80)]
        ears.may_go_on.clear()
        for number, client in enumerate(clients):
            for count in range(1, 4):
                payload = f"{number} {count}".encode()
                await client.send(Publish(f"user/{ann.id}/up/x", payload, 1, packet_id=count))
        async with asyncio.timeout(20):
            while ears.under_way < 64:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await clients[0].quiet()
        assert ears.most_under_way == 64, "so many at the same time, and no more"
        ears.may_go_on.set()
        await ears.until(240)
        for number in range(80):
            order = [heard.payload for heard in ears.heard if heard.payload.startswith(f"{number} ".encode())]
            assert order == [f"{number} {count}".encode() for count in range(1, 4)]


async def test_what_a_room_tells_arrives_at_qos_1_and_waits_for_who_is_away(home: Home) -> None:
    ann = await home.user("ann")
    client = await home.client(ann, "phone", clean=False, session_expiry=3600)
    await client.subscribed(f"heji/notify/{ann.id}/#", qos=1)
    topics = [f"heji/notify/{ann.id}/book", f"heji/notify/{ann.id + 1}/book"]
    home.app.broker.tell(topics, b"wake up")
    await client.receive(topics[0], b"wake up", 1)
    await client.leave(session_expiry=3600)
    home.app.broker.tell(topics, b"while you slept")
    again = await home.client(ann, "phone", clean=False, session_expiry=3600)
    await again.receive(topics[0], b"while you slept", 1)


async def test_telling_never_raises(open_home: OpenHome) -> None:
    messengers: list[Messenger] = []

    def early(messenger: Messenger) -> None:
        messengers.append(messenger)
        messenger.tell(["heji/notify/1/book"], b"nobody is there yet")

    async with open_home(early):
        messengers[0].tell(["", "not/a/+/name", "heji/notify/1/book", "x" * 70_000], b"x")
        messengers[0].tell(["heji/notify/1/book"], b"x" * 3_000_000)
    messengers[0].tell(["heji/notify/1/book"], b"nobody is there any more")
