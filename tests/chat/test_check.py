"""`holdfast check` sees each kind of damage in this room, and none in a sound store."""

from __future__ import annotations

import pytest

from holdfast.chat.check import problems
from holdfast.store import Statement, Transaction
from tests.chat.conftest import House

DAMAGE = [
    ("UPDATE message SET msg_seq = 9 WHERE msg_seq = 2", "there are gaps"),
    ("UPDATE conversation SET head = head + 1", "its head is"),
    ("DELETE FROM message WHERE msg_seq = 4", "its last message is"),
    ("UPDATE conversation_member SET last_read_msg_seq = last_delivered_msg_seq + 1", "out of order"),
    ("UPDATE conversation_member SET last_delivered_msg_seq = 99", "out of order"),
    ("DELETE FROM conversation_member WHERE role = 0", "members and has"),
    ("UPDATE conversation_member SET role = 2", "owners, not one"),
    ("UPDATE conversation_member SET role = 0", "has 0 owners"),
    ("DELETE FROM conversation WHERE kind = 1", "is missing"),
    ("DELETE FROM single_chat", "not what that says"),
    ("DELETE FROM chat_group", "not what that says"),
    ("UPDATE single_chat SET high = high + 1", "is not theirs"),
    ("UPDATE message SET sender = 1", "its sender 1 is missing"),
    ("UPDATE message SET reply_to = 5 WHERE reply_to IS NOT NULL", "it replies to 5"),
    ("UPDATE message SET status = 4", "half revoked"),
    ("UPDATE message_mention SET msg_seq = 77 WHERE msg_seq = 1", "refers to the message 77"),
    ("INSERT INTO call_party (user_id, call_id, seen_ms) VALUES (1, 2, 3)", "in the call 2, which is over"),
    (
        "INSERT INTO call_record (id, caller, callee, kind, state, made_ms) VALUES (1, 2, 3, 'audio', 1, 4)",
        "call 1: its state 1",
    ),
]


class Undo(Exception):
    pass


def damaged(tx: Transaction, statement: str, expected: str) -> None:
    tx.execute(Statement(statement))
    found = list(problems(tx))
    assert any(expected in problem for problem in found), (statement, found)
    raise Undo


async def furnish(house: House) -> None:
    ann, bob, cid = await house.users(3)
    group = await house.group(ann, bob, cid)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        for number in range(3):
            await at_ann.say(bob, f"{number}")
            said = await at_bob.say_to_group(group, f"{number}", mentions=[str(cid)])
        await at_ann.say_to_group(group, "re", replyToServerMsgId=said["serverMsgId"])
        gone = await at_ann.say(bob, "never mind")
        await at_ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": gone["serverMsgId"]})
        await at_ann.hear(lambda f: f.get("ackType") == "revoked")


async def test_a_sound_room_has_no_problems(house: House) -> None:
    await furnish(house)
    assert await house.problems() == []


async def test_each_kind_of_damage_is_seen(sqlite_house: House) -> None:
    house = sqlite_house
    await furnish(house)

    for statement, expected in DAMAGE:
        with pytest.raises(Undo):
            await house.db.write(damaged, statement, expected)
    assert await house.problems() == []
