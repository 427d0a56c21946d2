"""Cursors only move forward, under whatever acknowledgements; they are written in batches and at disconnect."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.chat import actions
from holdfast.chat.actions import Move
from holdfast.chat.model import Kind
from holdfast.errors import StoreUnavailable
from holdfast.store import Query
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.chat.obstacle import Obstacle

LAZY = msgspec.structs.replace(QUICK, ack_batch_ms=3_600_000)  # no batch ends by itself
AUDIT = Query(
    tuple[int, int, str],
    "SELECT user_id, ack_type, device_id FROM message_ack ORDER BY message, ack_type, user_id",
)


async def test_acknowledgements_repeated_reversed_and_missing_leave_the_cursor_at_the_highest(
    house: House,
) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob, acks=False) as at_bob:
        for number in range(6):
            await at_ann.say(bob, f"{number}")
        messages = await at_bob.hear_messages(6)
        for ack_type, at in (
            ("delivered", 3),
            ("delivered", 3),
            ("delivered", 1),
            ("READ", 2),
            ("ack_read", 0),
            ("Delivered", 4),
            ("read", 2),
        ):
            await at_bob.ack(messages[at], ack_type)
        await at_bob.settled()
        await house.room.gateway.receipts.flush()
        assert await house.cursor_of(bob, ann) == (5, 3)
        await at_bob.ack(messages[5], "read")
        await at_bob.settled()
        await house.room.gateway.receipts.flush()
        assert await house.cursor_of(bob, ann) == (6, 6), "read lifts delivered"
        await until(lambda: any(f.get("msgSeq") == "6" and f.get("ackType") == "read" for f in at_ann.heard))
        told = [
            (f["ackType"], int(f["msgSeq"]))
            for f in at_ann.heard
            if f.get("ackType") in ("delivered", "read")
        ]
        for ack_type in ("delivered", "read"):
            seqs = [seq for kind, seq in told if kind == ack_type]
            assert seqs == sorted(set(seqs)), "a sender is told of what moved, once"


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 9)), max_size=4), max_size=6
    )
)
async def test_any_batches_leave_each_cursor_at_the_highest_that_was_said(
    sqlite_cursors: House, batches: list[list[tuple[int, int, int]]]
) -> None:
    house = sqlite_cursors
    ann, bob = await house.users(2)
    conversation = await house.db.write(actions.open_single_chat, ann, bob, house.new_id(), 1)
    users = (ann, bob)
    highest = dict.fromkeys(users, (0, 0))
    for batch in batches:
        moves = [
            Move(conversation, users[who], delivered, read, Kind.SINGLE) for who, delivered, read in batch
        ]
        moved = await house.db.write(actions.move_cursors, moves)
        for move in moves:
            before = highest[move.user_id]
            read = max(before[1], move.read)
            highest[move.user_id] = (max(before[0], move.delivered, read), read)
        for each in moved:
            assert each.delivered >= each.delivered_before
            assert each.read >= each.read_before
            assert (each.delivered, each.read) != (each.delivered_before, each.read_before)
        for user in users:
            assert await house.cursor_in(conversation, user) == highest[user]


async def test_a_batch_waits_for_more_and_a_disconnect_writes_it(open_house: OpenHouse) -> None:
    async with open_house(LAZY) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann:
            at_bob = house.phone(bob, acks=False)
            await at_bob.log_in()
            for number in range(20):
                await at_ann.say(bob, f"{number}")
            await house.room.gateway.receipts.flush()
            for message in await at_bob.hear_messages(20):
                await at_bob.ack(message)
            await at_bob.settled()
            assert await house.cursor_of(bob, ann) == (0, 0)
            at_bob.cut()
            await until(lambda: _cursor(house, bob, ann, (20, 0)))


async def _cursor(house: House, user: int, peer: int, cursors: tuple[int, int]) -> bool:
    return await house.cursor_of(user, peer) == cursors


async def test_a_return_right_after_the_acknowledgements_finds_them_written(open_house: OpenHouse) -> None:
    async with open_house(LAZY) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say(bob, "hello")
            await at_bob.hear_messages(1)
            await at_bob.settled()
            async with house.phone(bob) as again:
                await again.settled()
                assert again.messages == []


async def test_acknowledgements_that_the_store_refuses_are_written_when_it_is_back(
    open_house: OpenHouse,
) -> None:
    obstacle = Obstacle()
    async with open_house(on=obstacle.before) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say(bob, "1")
            obstacle.only, obstacle.refuse = actions.move_cursors, StoreUnavailable()
            await at_bob.hear_messages(1)
            await at_bob.settled()
            await house.room.gateway.receipts.flush()
            await at_ann.say(bob, "2")
            await at_bob.ack((await at_bob.hear_messages(2))[1], "read")
            await at_bob.settled()
            assert not [f for f in at_ann.heard if f.get("ackType") in ("delivered", "read")]
            obstacle.refuse = None
            await until(lambda: _cursor(house, bob, ann, (2, 2)))
            await at_ann.hear(lambda f: f.get("ackType") == "read" and f["msgSeq"] == "2")


@pytest.mark.parametrize("detail", [False, True])
async def test_every_acknowledgement_is_kept_for_audits_if_the_operator_says_so(
    open_house: OpenHouse, detail: bool
) -> None:
    async with open_house(msgspec.structs.replace(QUICK, ack_detail=detail)) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann, device="desk") as at_ann, house.phone(bob, device="pocket") as at_bob:
            await at_ann.say(bob, "hello")
            message = (await at_bob.hear_messages(1))[0]
            for _ in range(2):
                await at_bob.ack(message, "read")
            await at_bob.settled()
            await house.room.gateway.receipts.flush()
            kept = await house.db.read(lambda view: view.rows(AUDIT))
            assert kept == ([(ann, 1, "desk"), (bob, 2, "pocket"), (bob, 3, "pocket")] if detail else [])


async def test_the_way_of_a_message_is_measured(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        for number in range(3):
            await at_ann.say(bob, f"{number}")
        for message in await at_bob.hear_messages(3):
            await at_bob.ack(message, "read")
        await at_bob.settled()
    text = house.metrics.exposition().decode()
    assert "holdfast_chat_delivered_seconds_count 3.0" in text
    assert "holdfast_chat_read_seconds_count" in text
    assert 'holdfast_chat_messages_total{result="saved"} 3.0' in text
