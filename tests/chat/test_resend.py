"""Catching up: everything above the cursor, in order, for every conversation, whatever comes in between."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.chat import actions, queries
from holdfast.chat.gateway import resend as resending
from holdfast.chat.model import Draft, Kind, Saved, Target
from holdfast.errors import StoreUnavailable
from holdfast.settings.chat import Backpressure
from holdfast.store import Transaction
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.chat.obstacle import Obstacle

BACKLOG = 1_000


async def write_backlog(house: House, sender: int, receiver: int, count: int, prefix: str = "b") -> int:
    """Straight into the log, as if it had been said while the receiver was away."""

    def save(tx: Transaction, conversation: int, start: int) -> None:
        target = Target(conversation, Kind.SINGLE, receiver)
        first = house.new_id()
        drafts = [
            Draft(
                first + number, f"{prefix}{start + number}-{sender}", "TEXT", f"{prefix}{start + number}", 1
            )
            for number in range(min(100, count - start))
        ]
        actions.send(tx, target, sender, drafts)
        tx.events.clear()  # type: ignore[attr-defined]

    conversation = await house.db.write(actions.open_single_chat, sender, receiver, house.new_id(), 1)
    for start in range(0, count, 100):
        await house.db.write(save, conversation, start)
    return conversation


async def test_a_live_message_during_a_resend_of_a_thousand_comes_once_and_in_its_place(house: House) -> None:
    ann, bob = await house.users(2)
    await write_backlog(house, ann, bob, BACKLOG)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        await at_bob.hear_messages(1)
        for number in range(30):
            await at_ann.say(bob, f"live{number}")
        messages = await at_bob.hear_messages(BACKLOG + 30)
        assert [int(m["msgSeq"]) for m in messages] == list(range(1, BACKLOG + 31))
        assert messages[-1]["body"] == "live29"
        await until(lambda: _cursor(house, bob, ann, BACKLOG + 30))


async def _cursor(house: House, user: int, peer: int, delivered: int) -> bool:
    return (await house.cursor_of(user, peer))[0] == delivered


async def test_a_live_message_acknowledged_before_the_backlog_skips_nothing(house: House) -> None:
    """A reader that breaks off in the middle, however far it acknowledged, gets the rest."""
    ann, bob = await house.users(2)
    await write_backlog(house, ann, bob, 300)
    got: list[int] = []
    async with house.phone(ann) as at_ann:
        for stop in (1, 70, 201, 330):
            at_bob = house.phone(bob, acks=False)
            await at_bob.log_in()
            await at_ann.say(bob, "live")
            messages = (await at_bob.hear_messages(max(1, stop - len(got))))[: stop - len(got)]
            got += [int(m["msgSeq"]) for m in messages]
            await at_bob.ack(messages[-1])
            await at_bob.settled()
            at_bob.cut()
            await at_bob.until_closed()
            if stop == 201:
                await write_backlog(house, ann, bob, 125, "more")
        assert got == list(range(1, 331))
        async with house.phone(bob) as at_bob:
            rest = await at_bob.hear_messages(300 + 125 + 4 - 330)
            assert [int(m["msgSeq"]) for m in rest] == list(range(331, 430))


async def test_a_busy_conversation_starves_no_other(house: House) -> None:
    ann, bob, cid, dan = await house.users(4)
    await write_backlog(house, cid, bob, 5, "few")
    await write_backlog(house, ann, bob, BACKLOG, "much")
    await write_backlog(house, dan, bob, 5, "few")
    async with house.phone(bob) as at_bob:
        messages = await at_bob.hear_messages(BACKLOG + 10)
        last_of_few = max(at for at, m in enumerate(messages) if m["body"].startswith("few"))
        assert last_of_few < 2 * queries.PAGE + 10
        for sender in (ann, cid, dan):
            seqs = [int(m["msgSeq"]) for m in messages if m["from"] == str(sender)]
            assert seqs == list(range(1, len(seqs) + 1))


async def test_a_client_that_acknowledges_nothing_still_gets_all_of_it(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the window a page at a time."""
    monkeypatch.setattr(resending, "PATIENCE", 0.1)
    async with open_house(msgspec.structs.replace(QUICK, window=50)) as house:
        ann, bob = await house.users(2)
        await write_backlog(house, ann, bob, 500)
        async with house.phone(bob, acks=False) as at_bob, house.phone(ann) as at_ann:
            await at_bob.hear_messages(50)
            await at_ann.say(bob, "live")
            messages = await at_bob.hear_messages(501)
            assert [int(m["msgSeq"]) for m in messages] == list(range(1, 502))
            assert (await house.cursor_of(bob, ann))[0] == 0
        async with house.phone(bob) as at_bob:
            assert len(await at_bob.hear_messages(501)) == 501


async def test_the_window_bounds_what_is_written_and_not_acknowledged(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resending, "PATIENCE", 3_600.0)
    async with open_house(msgspec.structs.replace(QUICK, window=50)) as house:
        ann, bob = await house.users(2)
        await write_backlog(house, ann, bob, 500)
        async with house.phone(bob, acks=False) as at_bob:
            await at_bob.hear_messages(50)
            await at_bob.settled()
            assert len(at_bob.messages) == 50
            await at_bob.ack(at_bob.messages[29])
            await at_bob.hear_messages(80)
            await at_bob.settled()
            assert len(at_bob.messages) == 80


async def test_pages_of_nothing_but_their_own_do_not_hold_the_backlog_up(house: House) -> None:
    ann, bob = await house.users(2)
    await write_backlog(house, bob, ann, 2 * queries.PAGE + 1, "own")
    await write_backlog(house, ann, bob, 1, "hers")
    async with house.phone(bob) as at_bob:
        messages = await at_bob.hear_messages(1)
        assert [m["body"] for m in messages] == ["hers0"]
        await until(lambda: _cursor(house, bob, ann, 2 * queries.PAGE + 2))


async def test_a_quick_return_gets_the_backlog_again(house: House) -> None:
    """Nothing is held back because it was sent a moment ago: only an acknowledgement says that it arrived."""
    ann, bob = await house.users(2)
    await write_backlog(house, ann, bob, 20)
    for _ in range(3):
        at_bob = house.phone(bob, acks=False)
        await at_bob.log_in()
        assert len(await at_bob.hear_messages(20)) == 20
        at_bob.cut()
        await at_bob.until_closed()


async def test_a_push_that_was_lost_is_found_when_the_heads_are_compared(open_house: OpenHouse) -> None:
    async with open_house(msgspec.structs.replace(QUICK, compare_seconds=0.3)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        lost = True

        def lossy(event: Saved) -> None:
            if not lost:
                house.room.gateway.relay.saved(event)

        house.db.events._handlers[Saved] = [lossy]  # type: ignore[list-item]
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say(bob, "1")
            await at_ann.say_to_group(group, "2")
            await at_bob.hear_messages(2)
            await at_ann.say(bob, "3")
            lost = False
            await at_ann.say(bob, "4")
            await at_bob.hear_messages(4)
            in_single = [m["body"] for m in at_bob.messages if m["type"] == "SINGLE_CHAT"]
            assert in_single == ["1", "3", "4"], "what was lost came before what came after it"


async def test_a_read_that_fails_is_tried_again(open_house: OpenHouse) -> None:
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        await write_backlog(house, ann, bob, 250)
        obstacle.only, obstacle.refuse = queries.page, StoreUnavailable()
        async with house.phone(bob) as at_bob:
            await at_bob.settled()
            assert at_bob.messages == []
            obstacle.refuse = None
            await at_bob.hear_messages(250)


async def test_messages_that_come_while_a_user_authenticates_fall_into_no_gap(open_house: OpenHouse) -> None:
    """The snapshot of where they stand is held up; what is said meanwhile is in it or remembered."""
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        async with house.phone(ann) as at_ann:
            await at_ann.say(bob, "before")
            obstacle.only = queries.standings
            obstacle.opened.clear()
            at_bob = house.phone(bob)
            logging_in = asyncio.create_task(at_bob.log_in())
            await until(lambda: obstacle.held)
            await at_ann.say(bob, "meanwhile")
            await at_ann.say_to_group(group, "also")
            obstacle.opened.set()
            await logging_in
            await at_bob.hear_messages(3)
            await at_ann.say(bob, "after")
            messages = await at_bob.hear_messages(4)
            singles = [m["body"] for m in messages if m["type"] == "SINGLE_CHAT"]
            assert singles == ["before", "meanwhile", "after"]
            await at_bob.close()


async def test_a_slow_answer_to_where_they_stand_does_not_send_twice(open_house: OpenHouse) -> None:
    """The snapshot is taken after the push, and has its message too."""
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann:
            await at_ann.say(bob, "1")
            obstacle.only = queries.standings
            obstacle.opened.clear()
            at_bob = house.phone(bob)
            logging_in = asyncio.create_task(at_bob.log_in())
            await until(lambda: obstacle.held)
            for number in range(2, 6):
                await at_ann.say(bob, f"{number}")
            obstacle.opened.set()
            await logging_in
            await at_bob.hear_messages(5)
            await at_bob.settled()
            assert at_bob.bodies == ["1", "2", "3", "4", "5"]
            await at_bob.close()


async def test_what_was_revoked_comes_as_a_placeholder(house: House) -> None:
    ann, bob = await house.users(2)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann:
        single = await at_ann.say(bob, "oops")
        in_group = await at_ann.say_to_group(group, "oops", mentions=[str(bob)])
        for ack in (single, in_group, single):
            await at_ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": ack["serverMsgId"]})
        await at_ann.settled()
        acks = [f for f in at_ann.heard if f.get("ackType") == "revoked"]
        assert [ack["serverMsgId"] for ack in acks] == [
            single["serverMsgId"],
            in_group["serverMsgId"],
            single["serverMsgId"],
        ], "again is a success"
        async with house.phone(bob) as at_bob:
            for message in await at_bob.hear_messages(2):
                assert message["msgType"] == "REVOKED"
                assert not {"body", "mentions", "important"} & set(message)
        again = await at_ann.say(bob, "oops", "new")
        assert again["msgSeq"] == "2"
    async with house.http(bob) as http:
        page = (await http.get("/single-chat/message/since", params={"peerUserId": str(ann)})).json()["data"]
        assert [m.get("body") for m in page["items"]] == [None, "oops"]
    assert await house.problems() == []


async def test_members_who_are_online_are_told_of_a_revocation(house: House) -> None:
    ann, bob, cid = await house.users(3)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.phone(cid) as at_cid:
        for ack in (await at_ann.say(bob, "oops"), await at_ann.say_to_group(group, "oops")):
            at = len(at_bob.heard)
            await at_ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": ack["serverMsgId"]})
            told = await at_bob.hear("MESSAGE_REVOKED", after=at)
            assert (told["serverMsgId"], told["msgSeq"], told["from"]) == (ack["serverMsgId"], "1", str(ann))
        await at_cid.settled()
        assert not [f for f in at_cid.heard if f["type"] == "MESSAGE_REVOKED"]


def test_the_settings_of_the_marks_are_the_specs() -> None:
    assert Backpressure() == Backpressure(262_144, 524_288, 3_000, True)
    assert queries.PAGE == 200
