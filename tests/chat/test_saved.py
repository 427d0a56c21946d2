"""Saved means committed, once; msgSeq is dense and in commit order: whoever sends what how often from where."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest

from holdfast.chat import actions
from holdfast.clock import ManualClock
from holdfast.errors import OutcomeUnknown, StoreUnavailable
from holdfast.store import Query
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.chat.obstacle import Obstacle

SEVERAL = msgspec.structs.replace(QUICK, single_session=False)
ROWS = Query(
    tuple[int, int, str], "SELECT msg_seq, sender, client_msg_id FROM message ORDER BY conversation, msg_seq"
)


async def rows(house: House) -> list[tuple[int, int, str]]:
    return await house.db.read(lambda view: view.rows(ROWS))


async def test_the_same_message_from_twenty_connections_at_once_is_one_row(open_house: OpenHouse) -> None:
    async with open_house(SEVERAL) as house:
        ann, bob = await house.users(2)
        phones = [house.phone(ann) for _ in range(20)]
        await asyncio.gather(*(phone.log_in() for phone in phones))
        acks = await asyncio.gather(*(phone.say(bob, "hello", "same") for phone in phones))
        assert {(ack["type"], ack["serverMsgId"], ack["msgSeq"]) for ack in acks} == {
            ("ACK", acks[0]["serverMsgId"], "1")
        }
        assert await rows(house) == [(1, ann, "same")]
        async with house.phone(bob) as at_bob:
            await at_bob.settled()
            await at_bob.hear_messages(1)
        await asyncio.gather(*(phone.close() for phone in phones))


async def test_the_same_message_through_two_processes_is_one_row(open_house: OpenHouse) -> None:
    if open_house.backend == "sqlite":
        return  # a second process on the same folder is refused
    async with open_house(SEVERAL) as one, open_house(SEVERAL) as two:
        ann, bob = await one.users(2)
        phones = [house.phone(ann) for house in (one, two) for _ in range(5)]
        await asyncio.gather(*(phone.log_in() for phone in phones))
        for key in ("a", "b", "c"):
            acks = await asyncio.gather(*(phone.say(bob, "hello", key) for phone in phones))
            assert len({(ack["type"], ack["serverMsgId"], ack["msgSeq"]) for ack in acks}) == 1
        assert [seq for seq, _, _ in await rows(one)] == [1, 2, 3]
        await asyncio.gather(*(phone.close() for phone in phones))


async def test_one_id_for_two_conversations_at_once_saves_one_and_leaves_no_gap(
    open_house: OpenHouse,
) -> None:
    async with open_house(SEVERAL) as house:
        ann, bob, cid = await house.users(3)
        group = await house.group(ann, bob)
        phones = [house.phone(ann) for _ in range(6)]
        await asyncio.gather(*(phone.log_in() for phone in phones))
        for number in range(15):
            key = f"k{number}"
            answers = await asyncio.gather(
                *(phone.say(bob, "x", key) for phone in phones[:2]),
                *(phone.say(cid, "x", key) for phone in phones[2:4]),
                *(phone.say_to_group(group, "x", key) for phone in phones[4:]),
            )
            said = Counter(answer.get("reason", answer["type"]) for answer in answers)
            assert said == {"ACK": 2, "msg_id_conflict": 4}
        assert await house.problems() == []
        assert len(await rows(house)) == 15
        await asyncio.gather(*(phone.close() for phone in phones))


async def test_runs_with_the_same_ids_the_other_way_round_do_not_wait_for_each_other(
    open_house: OpenHouse,
) -> None:
    """Two connections send the same ids to two conversations, one forwards, one backwards."""
    async with open_house(SEVERAL) as house:
        ann, bob, cid = await house.users(3)
        async with house.phone(ann) as one, house.phone(ann) as two:
            for turn in range(8):
                keys = [f"{turn}-{number}" for number in range(12)]
                await asyncio.gather(
                    *(one.send(_chat(bob, key)) for key in keys),
                    *(two.send(_chat(cid, key)) for key in reversed(keys)),
                )
                for key in keys:
                    answers = [
                        await phone.hear(lambda f, key=key: f.get("clientMsgId") == key)
                        for phone in (one, two)
                    ]
                    assert sorted(a.get("reason", "saved") for a in answers) == ["msg_id_conflict", "saved"]
        assert await house.problems() == []
        assert "holdfast_store_retries_total 0.0" in house.metrics.exposition().decode()


def _chat(to: int, key: str, body: str = "x") -> dict[str, Any]:
    return {"type": "SINGLE_CHAT", "to": str(to), "clientMsgId": key, "body": body}


async def test_what_one_connection_sends_is_numbered_and_acknowledged_in_its_order(house: House) -> None:
    ann, bob, cid = await house.users(3)
    group = await house.group(ann, bob, cid)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        keys = [f"k{number}" for number in range(60)]
        for number, key in enumerate(keys):
            if number % 7 == 3:
                await at_ann.send({**_chat(bob, key), "type": "GROUP_CHAT", "groupId": str(group)})
            else:
                await at_ann.send(_chat(bob, key, key))
            if number % 20 == 19:
                await at_ann.hear(lambda f, key=key: f.get("clientMsgId") == key)
        acks = [f for f in at_ann.heard if f.get("ackType") == "saved"]
        assert [ack["clientMsgId"] for ack in acks] == keys
        singles = [int(ack["msgSeq"]) for ack in acks if int(ack["clientMsgId"][1:]) % 7 != 3]
        assert singles == list(range(1, len(singles) + 1))
        await at_bob.hear_messages(60)
        heard = [m["body"] for m in at_bob.messages if m["type"] == "SINGLE_CHAT"]
        assert heard == [key for number, key in enumerate(keys) if number % 7 != 3]
    assert await house.problems() == []


async def test_many_senders_to_one_group_leave_no_gap_and_everybody_hears_all_in_order(house: House) -> None:
    users = await house.users(6)
    group = await house.group(*users)
    phones = [house.phone(user) for user in users]
    await asyncio.gather(*(phone.log_in() for phone in phones))

    async def speak(phone: Any, number: int) -> None:
        for turn in range(10):
            assert (await phone.say_to_group(group, f"{number}-{turn}"))["type"] == "ACK"

    await asyncio.gather(*(speak(phone, number) for number, phone in enumerate(phones)))
    for phone in phones:
        await phone.hear_messages(50)
        seqs = [int(m["msgSeq"]) for m in phone.messages]
        assert seqs == sorted(set(seqs)), "in order, once"
    assert await house.problems() == []
    assert [seq for seq, _, _ in await rows(house)] == list(range(1, 61))
    await asyncio.gather(*(phone.close() for phone in phones))


async def test_an_id_said_again_with_other_words_or_elsewhere_is_a_conflict_and_changes_nothing(
    house: House,
) -> None:
    ann, bob, cid = await house.users(3)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        first = await at_ann.say(bob, "hello", "key")
        for answer in (
            await at_ann.say(bob, "other", "key"),
            await at_ann.say(cid, "hello", "key"),
            await at_ann.say_to_group(group, "hello", "key"),
        ):
            assert answer["reason"] == "msg_id_conflict"
        assert (await at_bob.say(ann, "hello", "key"))["type"] == "ACK", "a key is its sender's own"
        again = await at_ann.say(bob, "hello", "key")
        assert (again["serverMsgId"], again["msgSeq"]) == (first["serverMsgId"], "1")
        await at_bob.settled()
        assert at_bob.bodies == ["hello"], "a repetition is not delivered once more"
        run = [_chat(bob, "twice"), _chat(bob, "twice"), _chat(bob, "twice", "otherwise")]
        await asyncio.gather(*(at_ann.send(frame) for frame in run))
        await at_ann.hear(lambda f: f.get("clientMsgId") == "twice" and f["type"] == "ERROR")
        acks = [f for f in at_ann.heard if f.get("clientMsgId") == "twice" and f["type"] == "ACK"]
        assert len(acks) == 2
        assert acks[0] == acks[1]
    assert await house.problems() == []


@pytest.mark.parametrize("why", [StoreUnavailable(), OutcomeUnknown()])
async def test_while_the_store_refuses_nothing_is_acknowledged_and_then_all_is_well(
    open_house: OpenHouse, why: Exception
) -> None:
    """Refused before the commit, or not known to have been committed: the client sends it again, and it is once there."""
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say(bob, "before")
            obstacle.only = actions.send
            if isinstance(why, OutcomeUnknown):
                obstacle.after_commit = why
            else:
                obstacle.refuse = why
            for number in range(3):
                answer = await at_ann.say(bob, f"{number}", f"k{number}")
                assert (answer["type"], answer["reason"]) == ("ERROR", "server_busy")
            obstacle.refuse = obstacle.after_commit = None
            for number in range(3):
                answer = await at_ann.say(bob, f"{number}", f"k{number}")
                assert (answer["type"], answer["msgSeq"]) == ("ACK", f"{number + 2}")
            await at_bob.hear_messages(4)
            assert at_bob.bodies == ["before", "0", "1", "2"]
        assert await house.problems() == []


async def test_a_sender_who_goes_away_in_the_middle_of_a_commit_is_still_heard(open_house: OpenHouse) -> None:
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say(bob, "first")
            obstacle.only = actions.send
            obstacle.opened.clear()
            await at_ann.send(_chat(bob, "last words"))
            await until(lambda: obstacle.held)
            at_ann.cut()
            await at_ann.until_closed()
            obstacle.opened.set()
            await at_bob.hear_messages(2)


async def test_a_message_is_not_seen_before_it_is_committed(open_house: OpenHouse) -> None:
    """Neither acknowledged nor delivered while its commit is under way."""
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say(bob, "first")
            obstacle.only = actions.send
            obstacle.opened.clear()
            await at_ann.send(_chat(bob, "second"))
            await until(lambda: obstacle.held)
            await at_bob.settled()
            assert len(at_bob.messages) == 1
            assert not [f for f in at_ann.heard if f.get("clientMsgId") == "second"]
            obstacle.opened.set()
            await at_bob.hear_messages(2)


async def test_ids_are_not_given_out_a_second_time_when_the_clock_is_set_back(open_house: OpenHouse) -> None:
    later, earlier = ManualClock(), ManualClock(1_600_000_000_000)
    async with open_house(clock=later) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann:
            last = [await at_ann.say(bob, f"{n}") for n in range(3)][-1]
    async with open_house(clock=earlier) as house, house.phone(ann) as at_ann:
        after = await at_ann.say(bob, "after")
        assert int(after["serverMsgId"]) > int(last["serverMsgId"])
