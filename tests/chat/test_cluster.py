"""Two processes on one PostgreSQL with a real Redis between them: quick while it is there, right when it is not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.chat.gateway import rounds, seats
from holdfast.settings import Redis
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.conftest import missing
from tests.servers.redis import RedisServer, SlowWire, binary
from tests.servers.stores import PostgresqlStores

NEVER = 3_600.0
ONLY_BY_PUSH = msgspec.structs.replace(QUICK, compare_seconds=NEVER)


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    program = binary()
    if program is None:
        missing("Redis")
    assert program is not None
    server = RedisServer(tmp_path, program)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes round does not come: only a push can have done it."""
    monkeypatch.setattr(seats, "LOOK_SECONDS", NEVER)
    monkeypatch.setattr(rounds, "LOOK_SECONDS", NEVER)


Two = Callable[..., Any]


@pytest.fixture
def two(postgresql_stores: PostgresqlStores) -> Two:
    """Two processes; each may have its own way to Redis."""

    @asynccontextmanager
    async def opened(
        *urls: str, chat: Any = ONLY_BY_PUSH, timeout_ms: int = 10_000
    ) -> AsyncIterator[list[House]]:
        async with AsyncExitStack() as stack:
            houses = []
            for url in urls:
                open_house = OpenHouse(postgresql_stores)
                house = await stack.enter_async_context(
                    open_house(chat, redis=Redis(url=url, timeout_ms=timeout_ms))
                )
                houses.append(house)
            await until(lambda: _hears(houses[0], len(urls)))
            yield houses

    return opened


async def _hears(house: House, count: int) -> bool:
    """All subscriptions stand."""
    found = await house.room.cluster._redis.execute_command("PUBSUB", "NUMSUB", house.room.cluster._channel)
    return bool(found[1] >= count)


# -- quick while it is there


async def test_messages_receipts_and_revocations_reach_the_other_process_at_once(
    two: Two, redis_server: RedisServer, no_looks: None
) -> None:
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann, bob, cid = await one.users(3)
        group = await one.group(ann, bob, cid)
        async with one.phone(ann) as at_ann, other.phone(bob) as at_bob, other.phone(cid) as at_cid:
            acks = [await at_ann.say(bob, f"{number}") for number in range(5)]
            await at_ann.say_to_group(group, "all", mentions=[str(cid)])
            await at_bob.hear_messages(6)
            assert [m["body"] for m in at_bob.messages if m["type"] == "SINGLE_CHAT"] == list("01234")
            assert (await at_cid.hear("GROUP_CHAT"))["important"] is True
            await at_ann.hear(
                lambda f: f.get("ackType") == "delivered" and f["serverMsgId"] == acks[-1]["serverMsgId"]
            )
            await at_bob.ack(at_bob.messages[0], "read")
            await at_ann.hear(lambda f: f.get("ackType") == "read")
            await at_ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": acks[0]["serverMsgId"]})
            await at_bob.hear("MESSAGE_REVOKED")
            await at_bob.say(ann, "back")
            await at_ann.hear_messages(1)


async def test_the_newest_connection_ends_the_older_in_the_other_process_at_once(
    two: Two, redis_server: RedisServer, no_looks: None
) -> None:
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann = await one.user()
        first = one.phone(ann)
        await first.log_in()
        async with other.phone(ann) as second:
            assert (await first.hear("ERROR"))["reason"] == "kicked"
            assert await first.until_closed() == 1008
            await second.settled()


async def test_whoever_leaves_through_one_process_gets_nothing_more_from_the_other(
    two: Two, redis_server: RedisServer
) -> None:
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann, bob = await one.users(2)
        group = await one.group(ann, bob)
        async with one.phone(ann) as at_ann, other.phone(bob) as at_bob:
            await at_ann.say_to_group(group, "in")
            await at_bob.hear_messages(1)
            await one.leave(group, bob)
            await at_ann.say_to_group(group, "out")
            await at_ann.say(bob, "end")
            await at_bob.hear_messages(2)
            assert at_bob.bodies == ["in", "end"]
            await one.join(group, bob)
            await at_ann.say_to_group(group, "again")
            await at_bob.hear_messages(3)


async def test_a_call_goes_from_process_to_process(two: Two, redis_server: RedisServer) -> None:
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann, bob = await one.users(2)
        async with one.phone(ann) as at_ann, other.phone(bob) as at_bob:
            await until(lambda: one.room.gateway.relay.reaches(bob))
            await at_ann.send({"type": "CALL_INVITE", "to": str(bob), "sdp": "offer"})
            call = (await at_bob.hear("CALL_INVITE"))["callId"]
            await at_bob.send({"type": "CALL_ACCEPT", "callId": call, "sdp": "answer"})
            assert (await at_ann.hear("CALL_ACCEPT"))["sdp"] == "answer"
            await at_ann.send({"type": "CALL_ICE", "callId": call, "iceCandidate": "c"})
            await at_bob.hear("CALL_ICE")
            await at_bob.send({"type": "CALL_END", "callId": call})
            await at_ann.hear("CALL_END")
        await until(lambda: _gone(one, bob))


async def _gone(house: House, user: int) -> bool:
    return not await house.room.gateway.relay.reaches(user)


async def test_a_repetition_is_answered_without_the_database(two: Two, redis_server: RedisServer) -> None:
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann, bob = await one.users(2)
        async with one.phone(ann) as at_ann:
            first = await at_ann.say(bob, "hello", "key")
        await until(lambda: _remembered(redis_server))
        before = _commits(other)
        async with other.phone(ann) as at_ann:
            taken = _commits(other) - before
            again = await at_ann.say(bob, "hello", "key")
            assert (again["serverMsgId"], again["msgSeq"]) == (first["serverMsgId"], first["msgSeq"])
            assert _commits(other) - before == taken
            conflict = await at_ann.say(bob, "other", "key")
            assert conflict["reason"] == "msg_id_conflict"


def _commits(house: House) -> float:
    text = house.metrics.exposition().decode()
    line = next(line for line in text.splitlines() if line.startswith("holdfast_store_commits_total "))
    return float(line.split()[1])


def _remembered(server: RedisServer) -> bool:
    with server.client() as client:
        return bool(client.keys("holdfast:*:memo:*"))


# -- right when it is not


class Traffic:
    """Three who talk through two processes, alone and in a group, and come back when they are cut."""

    def __init__(self, houses: list[House], seed: int) -> None:
        self._houses = houses
        self._random = random.Random(seed)
        self.acknowledged: dict[str, set[str]] = {}
        self.stopped = False

    async def furnish(self) -> None:
        self.users = await self._houses[0].users(3)
        self.group = await self._houses[0].group(*self.users)
        self.phones = [self._houses[at % 2].phone(user) for at, user in enumerate(self.users)]
        for phone in self.phones:
            await phone.log_in()

    async def talk(self, at: int) -> None:
        number = 0
        while not self.stopped:
            number += 1
            body = f"{at}-{number}"
            phone = self.phones[at]
            if self._random.random() < 0.4:
                where, answer = "group", await phone.say_to_group(self.group, body)
            else:
                peer = self.users[(at + 1) % 3]
                where, answer = f"{peer}", await phone.say(peer, body)
            assert answer["type"] == "ACK", answer
            self.acknowledged.setdefault(where, set()).add(body)
            await asyncio.sleep(0.01)

    def is_complete(self) -> bool:
        for at, phone in enumerate(self.phones):
            in_group = {m["body"] for m in phone.messages if m["type"] == "GROUP_CHAT"}
            expected = {b for b in self.acknowledged.get("group", ()) if not b.startswith(f"{at}-")}
            single = {m["body"] for m in phone.messages if m["type"] == "SINGLE_CHAT"}
            if in_group != expected or single != self.acknowledged.get(f"{self.users[at]}", set()):
                return False
        return True

    def assert_in_order(self) -> None:
        for phone in self.phones:
            seen: dict[str, list[int]] = {}
            for message in phone.messages:
                where = message.get("groupId") or message["from"]
                seen.setdefault(where, []).append(int(message["msgSeq"]))
            for seqs in seen.values():
                assert seqs == sorted(set(seqs)), "in order, once"


async def run_through(houses: list[House], disturb: Callable[[], Any], *, seconds: float = 1.0) -> Traffic:
    traffic = Traffic(houses, seed=7)
    await traffic.furnish()
    async with asyncio.TaskGroup() as talking:
        for at in range(3):
            talking.create_task(traffic.talk(at))
        await asyncio.sleep(seconds / 2)
        await disturb()
        await asyncio.sleep(seconds / 2)
        traffic.stopped = True
    await until(traffic.is_complete)
    traffic.assert_in_order()
    for phone in traffic.phones:
        await phone.settled()
        assert not [f for f in phone.heard if f["type"] == "ERROR"], "nobody was logged out"
        await phone.close()
    assert await houses[0].problems() == []
    return traffic


async def test_nothing_is_lost_when_redis_dies_in_the_middle_and_comes_back(
    two: Two, redis_server: RedisServer
) -> None:
    """No look at the heads comes round in this test: its return makes them look."""
    async with two(redis_server.url, redis_server.url) as houses:

        async def die_and_return() -> None:
            await asyncio.to_thread(redis_server.kill)
            await asyncio.sleep(1.0)
            await asyncio.to_thread(redis_server.start)

        await run_through(houses, die_and_return)


async def test_what_was_said_while_redis_was_away_comes_when_it_is_back(
    two: Two, redis_server: RedisServer
) -> None:
    """Nobody says anything after its return, and no look at the heads comes round."""
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann, bob = await one.users(2)
        async with one.phone(ann) as at_ann, other.phone(bob) as at_bob:
            await at_ann.say(bob, "before")
            await at_bob.hear_messages(1)
            redis_server.kill()
            for number in range(3):
                await at_ann.say(bob, f"{number}")
            await at_bob.settled()
            assert at_bob.bodies == ["before"]
            told = one.room.cluster._waiting
            await until(lambda: all(words[0] == "PING" for words in told))  # the pushes have been dropped
            await asyncio.to_thread(redis_server.start)
            await at_bob.hear_messages(4)
            assert at_bob.bodies == ["before", "0", "1", "2"]


async def test_nothing_is_lost_when_redis_dies_and_stays_away(two: Two, redis_server: RedisServer) -> None:
    chat = msgspec.structs.replace(QUICK, compare_seconds=0.5)
    async with two(redis_server.url, redis_server.url, chat=chat) as houses:

        async def die() -> None:
            await asyncio.to_thread(redis_server.kill)

        await run_through(houses, die)
        ann = await houses[0].user()
        first = houses[0].phone(ann)
        await first.log_in()
        async with houses[1].phone(ann) as second:
            assert (await first.hear("ERROR"))["reason"] == "kicked", "also without Redis"
            await second.settled()


async def test_nothing_is_lost_when_redis_is_emptied_in_the_middle(
    two: Two, redis_server: RedisServer
) -> None:
    async with two(redis_server.url, redis_server.url) as houses:

        async def empty() -> None:
            for _ in range(5):
                await asyncio.to_thread(redis_server.empty)
                await asyncio.sleep(0.05)

        await run_through(houses, empty)


async def test_nothing_is_lost_and_nobody_waits_when_redis_is_slow(
    two: Two, redis_server: RedisServer
) -> None:
    wire = SlowWire(redis_server.port)
    await wire.start()
    try:
        async with two(wire.url, wire.url, timeout_ms=300) as houses:

            async def slow_down() -> None:
                wire.delay = 30.0
                ann, bob = await houses[0].users(2)
                async with houses[0].phone(ann) as at_ann:
                    async with asyncio.timeout(25):  # not as long as Redis takes for one answer
                        for number in range(5):
                            assert (await at_ann.say(bob, f"{number}"))["type"] == "ACK"
                wire.delay = 0.0

            await run_through(houses, slow_down)
    finally:
        await wire.stop()


async def test_a_process_starts_and_serves_while_redis_is_away(
    postgresql_stores: PostgresqlStores, redis_server: RedisServer
) -> None:
    redis_server.kill()
    async with OpenHouse(postgresql_stores)(ONLY_BY_PUSH, redis=Redis(url=redis_server.url)) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            assert (await at_ann.say(bob, "hello"))["type"] == "ACK"
            await at_bob.hear_messages(1)
            await at_ann.hear(lambda f: f.get("ackType") == "delivered")


async def test_what_another_house_says_on_the_same_redis_is_not_heard(
    two: Two, redis_server: RedisServer
) -> None:
    """Channels and keys carry the store's epoch; nonsense on our own channel is survived."""
    async with two(redis_server.url, redis_server.url) as (one, other):
        ann, bob = await one.users(2)
        with redis_server.client() as client:
            channel = one.room.cluster._channel
            for nonsense in (b"", b"x", b"\xff" * 100, b"00000000{}", b'00000000{"type":"opened"}'):
                client.publish(channel, nonsense)
        async with one.phone(ann) as at_ann, other.phone(bob) as at_bob:
            await at_ann.say(bob, "hello")
            await at_bob.hear_messages(1)
        assert one.room.cluster._prefix.split(":")[1] == one.room.gateway.epoch
