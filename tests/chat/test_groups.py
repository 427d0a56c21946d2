"""Groups: who hears what, how it travels, and when nobody hears anything more."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.chat import group_actions
from holdfast.chat.rules import delivery
from holdfast.settings.chat import Group
from tests.chat.conftest import QUICK, House, OpenHouse, until


def with_group(**changes: object) -> msgspec.Struct:
    return msgspec.structs.replace(QUICK, group=Group(**changes))


async def test_a_message_reaches_every_member_and_nobody_else(house: House) -> None:
    ann, bob, cid, eve = await house.users(4)
    group = await house.group(ann, bob, cid)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.phone(eve) as at_eve:
        ack = await at_ann.say_to_group(group, "hello")
        assert ack["msgSeq"] == "1"
        message = await at_bob.hear("GROUP_CHAT")
        assert (message["groupId"], message["from"], message["body"]) == (str(group), str(ann), "hello")
        assert "to" not in message
        await at_eve.settled()
        assert at_eve.messages == []
        async with house.phone(cid) as at_cid:
            assert (await at_cid.hear("GROUP_CHAT"))["serverMsgId"] == ack["serverMsgId"]
        await at_ann.settled()
        assert at_ann.messages == []


async def test_only_who_is_mentioned_or_replied_to_is_told_that_it_is_important(house: House) -> None:
    ann, bob, cid = await house.users(3)
    eve = await house.user()
    group = await house.group(ann, bob, cid)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.phone(cid, acks=False) as at_cid:
        first = await at_bob.say_to_group(group, "first")
        reply = {"mentions": [str(cid), str(eve)], "replyToServerMsgId": first["serverMsgId"]}
        await at_ann.say_to_group(group, "both", **reply)
        await at_ann.say_to_group(group, "neither")
        await at_bob.hear_messages(2)
        await at_cid.hear_messages(3)
        assert [m.get("important") for m in at_bob.messages] == [True, None]
        assert [m.get("important") for m in at_cid.messages] == [None, True, None]
        assert at_bob.messages[0]["mentions"] == [str(cid)], "eve is no member"
        assert at_bob.messages[0]["replyToServerMsgId"] == first["serverMsgId"]
    async with house.phone(cid) as at_cid:
        await at_cid.hear_messages(3)
        assert [m.get("important") for m in at_cid.messages] == [None, True, None], "also in a resend"


async def test_a_reply_to_what_is_not_in_this_conversation_is_refused(house: House) -> None:
    ann, bob = await house.users(2)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann:
        elsewhere = await at_ann.say(bob, "elsewhere")
        for reply_to, reason in (
            (elsewhere["serverMsgId"], "message_not_found"),
            ("12345", "message_not_found"),
            ("twelve", "bad_server_msg_id"),
        ):
            error = await at_ann.say_to_group(group, "re", replyToServerMsgId=reply_to)
            assert error["reason"] == reason


async def test_a_new_member_starts_at_the_present(house: House) -> None:
    ann, bob, cid = await house.users(3)
    group = await house.group(ann, bob)
    async with (
        house.phone(ann) as at_ann,
        house.phone(bob) as at_bob,
        house.phone(cid) as online_before,
    ):
        await at_ann.say_to_group(group, "before")
        await at_bob.hear_messages(1)  # who is in the group is remembered now
        await house.join(group, cid)
        await house.join(group, bob)  # is in it already
        assert await house.cursor_in(group, cid) == (1, 1)
        await at_ann.say_to_group(group, "after")
        await online_before.hear_messages(1)
        assert online_before.bodies == ["after"]
        async with house.http(cid) as http:
            page = (await http.get("/group/message/since", params={"groupId": str(group)})).json()["data"]
            assert [m["body"] for m in page["items"]] == ["after"]
        reply = await online_before.say_to_group(
            group, "re", replyToServerMsgId=await _id_of(house, ann, group, 1)
        )
        assert reply["reason"] == "message_not_found", "it cannot be seen, so it cannot be cited"


async def _id_of(house: House, user: int, group: int, seq: int) -> str:
    async with house.http(user) as http:
        page = (await http.get("/group/message/since", params={"groupId": str(group)})).json()["data"]
        return str(page["items"][seq - 1]["serverMsgId"])


async def test_history_is_shown_to_new_members_if_the_operator_says_so(open_house: OpenHouse) -> None:
    async with open_house(msgspec.structs.replace(QUICK, history_on_join=True)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann)
        async with house.phone(ann) as at_ann:
            await at_ann.say_to_group(group, "before")
        await house.join(group, bob)
        async with house.phone(bob) as at_bob, house.http(bob) as http:
            page = (await http.get("/group/message/since", params={"groupId": str(group)})).json()["data"]
            assert [m["body"] for m in page["items"]] == ["before"]
            await at_bob.settled()
            assert at_bob.messages == [], "shown, not sent"


@pytest.mark.parametrize("how", ["leaves", "is removed"])
async def test_whoever_is_out_of_a_group_gets_nothing_more_at_once(house: House, how: str) -> None:
    ann, bob = await house.users(2)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        await at_ann.say_to_group(group, "while in")
        await at_bob.hear_messages(1)
        if how == "leaves":
            await house.leave(group, bob)
        else:
            await house.db.write(group_actions.kick, group, ann, bob)
        ack = await at_ann.say_to_group(group, "when out")
        await at_bob.settled()
        assert at_bob.bodies == ["while in"]
        assert (await at_bob.say_to_group(group, "me too"))["reason"] == "not_group_member"
        at = len(at_bob.heard)
        await at_bob.ack(ack)
        assert (await at_bob.hear("ERROR", after=at))["reason"] == "ack_not_allowed"
        await house.join(group, bob)
        await at_ann.say_to_group(group, "back again")
        await at_bob.hear_messages(2)
        assert at_bob.bodies == ["while in", "back again"]
    async with house.phone(bob) as at_bob:
        await at_bob.settled()
        assert at_bob.messages == []


async def test_a_muted_member_hears_and_does_not_speak_until_it_is_over(house: House) -> None:
    ann, bob = await house.users(2)
    group = await house.group(ann, bob)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        spoken = await at_bob.say_to_group(group, "hello", "spoken")
        for until_ms in (-1, 2**60):
            await house.db.write(group_actions.mute, group, ann, bob, until_ms)
            assert (await at_bob.say_to_group(group, "more"))["reason"] == "group_speak_muted"
            again = await at_bob.say_to_group(group, "hello", "spoken")
            assert again["msgSeq"] == spoken["msgSeq"], "what was saved before is still answered"
        await at_ann.say_to_group(group, "shh")
        await at_bob.hear_messages(1)
        for until_ms in (0, 1):
            await house.db.write(group_actions.mute, group, ann, bob, until_ms)
            assert (await at_bob.say_to_group(group, "more"))["type"] == "ACK"


@pytest.mark.parametrize("mode", ["notify", "none"])
async def test_in_a_large_group_members_are_told_to_pull_or_find_it_when_they_come(
    open_house: OpenHouse, mode: str
) -> None:
    async with open_house(with_group(mode=mode)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.http(bob) as http:
            ack = await at_ann.say_to_group(group, "hello")
            if mode == "notify":
                notice = await at_bob.hear("GROUP_NOTIFY")
                assert notice == {
                    "type": "GROUP_NOTIFY",
                    "groupId": str(group),
                    "serverMsgId": ack["serverMsgId"],
                    "msgSeq": "1",
                    "from": str(ann),
                }
            await at_bob.settled()
            assert at_bob.messages == []
            asked = {"groupId": str(group), "sinceSeq": "0"}
            page = (await http.get("/group/message/since", params=asked)).json()["data"]
            assert [m["body"] for m in page["items"]] == ["hello"]
            await at_bob.ack(page["items"][0])
            await until(lambda: _delivered(house, group, bob, 1))
            await at_ann.say_to_group(group, "more")
            await at_bob.settled()
        async with house.phone(bob) as at_bob:
            await at_bob.hear_messages(1)
            assert at_bob.bodies == ["more"], "what was not pulled comes with the resend, whatever the mode"


async def _delivered(house: House, conversation: int, user: int, seq: int) -> bool:
    return (await house.cursor_in(conversation, user))[0] == seq


@pytest.mark.parametrize(
    ("members", "online", "expected"),
    [
        (1_999, 499, "push"),
        (2_000, 0, "notify"),
        (10, 500, "notify"),
        (1_999, 1_999, "notify"),
        (2_000, 2_000, "none"),
        (1_999, 2_000, "none"),
        (9_999, 10, "notify"),
        (10_000, 1, "none"),
    ],
)
def test_how_a_message_travels_follows_from_the_four_numbers(
    members: int, online: int, expected: str
) -> None:
    assert delivery(Group(), members, online) == expected
    assert delivery(Group(mode="push"), members, online) == "push"


@pytest.mark.parametrize(("receipts", "hears"), [("auto", True), ("on", True), ("off", False)])
async def test_a_members_receipts_go_to_whoever_wrote_the_message(
    open_house: OpenHouse, receipts: str, hears: bool
) -> None:
    async with open_house(with_group(receipts=receipts)) as house:
        ann, bob, cid = await house.users(3)
        group = await house.group(ann, bob, cid)
        async with (
            house.phone(ann) as at_ann,
            house.phone(bob, acks=False) as at_bob,
            house.phone(cid, acks=False) as at_cid,
        ):
            first = await at_ann.say_to_group(group, "one")
            second = await at_bob.say_to_group(group, "two")
            messages = await at_cid.hear_messages(2)
            await at_cid.ack(messages[1], "read")
            await until(lambda: _delivered(house, group, cid, 2))
            if hears:
                heard = await at_bob.hear(lambda f: f.get("ackType") == "read")
                assert heard["serverMsgId"] == second["serverMsgId"]
                assert (heard["groupId"], heard["from"]) == (str(group), str(cid))
                await at_cid.ack(messages[0])
            await at_ann.settled()
            await at_bob.settled()
            others = [f for f in at_ann.heard if f.get("ackType") in ("delivered", "read")]
            assert others == [], "nobody acknowledged hers; the cursor says it"
            assert first["ackType"] == "saved"
            if not hears:
                assert [f for f in at_bob.heard if f.get("ackType") == "read"] == []


async def test_receipts_of_a_group_of_a_hundred_are_not_passed_on(open_house: OpenHouse) -> None:
    async with open_house(with_group(receipts_below=2)) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say_to_group(group, "one")
            await at_bob.hear_messages(1)
            await until(lambda: _delivered(house, group, bob, 1))
            await at_ann.settled()
            assert [f["ackType"] for f in at_ann.heard if f["type"] == "ACK"] == ["saved"]
