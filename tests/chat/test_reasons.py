"""Each reason of the tables is reached, and closes the connection or not as the table says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from holdfast.accounts import actions as account_actions
from holdfast.chat import actions, group_actions
from holdfast.chat.reasons import EFFECTS, Effect, Reason, Refusal
from holdfast.clock import ManualClock
from holdfast.errors import StoreUnavailable
from tests.chat.conftest import PLENTY, QUICK, House, OpenHouse, until
from tests.chat.obstacle import Obstacle
from tests.chat.phone import Phone

POLICY = 1008
SETTINGS = msgspec.structs.replace(QUICK, auth_seconds=60.0, revoke_seconds=60, body_characters=10)


class Scene:
    """Ann and her phone, logged in; bob, cid; a group of bob's."""

    def __init__(self, house: House, clock: ManualClock, obstacle: Obstacle) -> None:
        self.house = house
        self.clock = clock
        self.obstacle = obstacle

    async def furnish(self) -> None:
        self.ann, self.bob, self.cid = await self.house.users(3)
        self.group = await self.house.group(self.bob, self.ann)
        self.bobs_own = await self.house.group(self.bob)
        self.phone = self.house.phone(self.ann)
        await self.phone.log_in()

    async def stranger(self) -> Phone:
        """A phone that has not authenticated."""
        return await Phone(self.house.ws).open()

    async def bobs_message(self) -> str:
        async with self.house.phone(self.bob) as at_bob:
            found: str = (await at_bob.say(self.cid, "hello"))["serverMsgId"]
            return found


Act = Callable[[Scene], Awaitable[Phone]]


def frame(**fields: Any) -> Act:
    """Ann's phone sends this."""

    async def act(scene: Scene) -> Phone:
        await scene.phone.send({key: value for key, value in fields.items() if value is not None})
        return scene.phone

    return act


def chat(**fields: Any) -> Act:
    async def act(scene: Scene) -> Phone:
        sent = {"type": "SINGLE_CHAT", "clientMsgId": "c", "to": str(scene.bob), "body": "hello", **fields}
        return await frame(**sent)(scene)

    return act


def group_chat(**fields: Any) -> Act:
    async def act(scene: Scene) -> Phone:
        sent = {
            "type": "GROUP_CHAT",
            "clientMsgId": "c",
            "groupId": str(scene.group),
            "body": "hello",
            **fields,
        }
        return await frame(**sent)(scene)

    return act


def raw(text: str | bytes) -> Act:
    async def act(scene: Scene) -> Phone:
        await scene.phone.send(text)
        return scene.phone

    return act


async def kicked(scene: Scene) -> Phone:
    await scene.house.phone(scene.ann).log_in()
    return scene.phone


async def logged_out(scene: Scene) -> Phone:
    await scene.house.db.write(account_actions.log_out_everywhere, scene.ann)
    return scene.phone


async def expired(scene: Scene) -> Phone:
    scene.clock.advance(1801)
    return scene.phone


async def unauthorized(scene: Scene) -> Phone:
    phone = await scene.stranger()
    await phone.send({"type": "SINGLE_CHAT", "clientMsgId": "c", "to": str(scene.bob), "body": "hello"})
    return phone


async def says_nothing(scene: Scene) -> Phone:
    return await scene.stranger()


async def another_user(scene: Scene) -> Phone:
    return await frame(type="REAUTH", token=scene.house.token(scene.bob))(scene)


async def floods(scene: Scene) -> Phone:
    for _ in range(15):
        await scene.phone.send({"type": "PING"})
    return scene.phone


async def store_is_away(scene: Scene) -> Phone:
    scene.obstacle.refuse, scene.obstacle.only = StoreUnavailable(), actions.send
    return await chat()(scene)


async def mistake_of_ours(scene: Scene) -> Phone:
    scene.obstacle.refuse, scene.obstacle.only = ZeroDivisionError(), actions.send
    return await chat()(scene)


async def foreign_message(scene: Scene) -> Phone:
    return await frame(type="ACK", ackType="read", serverMsgId=await scene.bobs_message())(scene)


async def not_mine(scene: Scene) -> Phone:
    async with scene.house.phone(scene.bob) as at_bob:
        theirs = (await at_bob.say(scene.ann, "hello"))["serverMsgId"]
    return await frame(type="MESSAGE_REVOKE", serverMsgId=theirs)(scene)


async def too_late(scene: Scene) -> Phone:
    mine = (await scene.phone.say(scene.bob, "hello"))["serverMsgId"]
    scene.clock.advance(61)
    return await frame(type="MESSAGE_REVOKE", serverMsgId=mine)(scene)


async def muted(scene: Scene) -> Phone:
    await scene.house.db.write(group_actions.mute, scene.group, scene.bob, scene.ann, -1)
    return await group_chat()(scene)


async def not_in_the_group(scene: Scene) -> Phone:
    return await group_chat(groupId=str(scene.bobs_own))(scene)


async def said_otherwise(scene: Scene) -> Phone:
    await scene.phone.say(scene.bob, "hello", "c")
    return await chat(body="other")(scene)


REACHED: Mapping[Reason, Act] = {
    Reason.KICKED: kicked,
    Reason.SESSION_INVALID: logged_out,
    Reason.TOKEN_EXPIRED: expired,
    Reason.UNAUTHORIZED: unauthorized,
    Reason.AUTH_TIMEOUT: says_nothing,
    Reason.REAUTH_UID_MISMATCH: another_user,
    Reason.TOO_MANY_REQUESTS: floods,
    Reason.BAD_JSON: raw("{"),
    Reason.MISSING_TYPE: raw("{}"),
    Reason.NOT_IMPLEMENTED: frame(type="DANCE"),
    Reason.SERVER_BUSY: store_is_away,
    Reason.INTERNAL_ERROR: mistake_of_ours,
    Reason.MISSING_MSG_ID: chat(clientMsgId=None),
    Reason.MISSING_TO: chat(to=""),
    Reason.MISSING_GROUP_ID: group_chat(groupId=None),
    Reason.MISSING_BODY: chat(body=""),
    Reason.BODY_TOO_LONG: chat(body="12345678901"),
    Reason.CANNOT_SEND_TO_SELF: lambda scene: chat(to=str(scene.ann))(scene),
    Reason.USER_NOT_FOUND: chat(to="12345"),
    Reason.MISSING_ACK_TYPE: frame(type="ACK", serverMsgId="5"),
    Reason.UNKNOWN_ACK_TYPE: frame(type="ACK", serverMsgId="5", ackType="saved"),
    Reason.MISSING_SERVER_MSG_ID: frame(type="ACK", ackType="read"),
    Reason.BAD_SERVER_MSG_ID: frame(type="ACK", ackType="read", serverMsgId="five"),
    Reason.MESSAGE_NOT_FOUND: frame(type="ACK", ackType="read", serverMsgId="5"),
    Reason.ACK_NOT_ALLOWED: foreign_message,
    Reason.NOT_MESSAGE_SENDER: not_mine,
    Reason.REVOKE_TIMEOUT: too_late,
    Reason.NOT_GROUP_MEMBER: not_in_the_group,
    Reason.GROUP_SPEAK_MUTED: muted,
    Reason.MSG_ID_CONFLICT: said_otherwise,
}


@asynccontextmanager
async def a_scene(open_house: OpenHouse, **changes: Any) -> Any:
    clock, obstacle = ManualClock(), Obstacle()
    async with open_house(
        msgspec.structs.replace(SETTINGS, **changes), clock=clock, on=obstacle.before
    ) as house:
        scene = Scene(house, clock, obstacle)
        await scene.furnish()
        yield scene


def settings_for(reason: Reason) -> dict[str, Any]:
    if reason is Reason.AUTH_TIMEOUT:
        return {"auth_seconds": 3.0}
    if reason is Reason.TOO_MANY_REQUESTS:
        return {"rate": msgspec.structs.replace(PLENTY, connection=0, connection_burst=10)}
    return {}


def test_every_reason_of_the_table_is_reached_by_an_act() -> None:
    assert set(REACHED) == set(Reason)


async def test_each_reason_is_said_and_closes_as_the_table_has_it(sqlite_open: OpenHouse) -> None:
    for reason, act in REACHED.items():
        async with a_scene(sqlite_open, **settings_for(reason)) as scene:
            phone = await act(scene)
            error = await phone.hear("ERROR")
            assert error["reason"] == reason.value
            if EFFECTS[reason] is Effect.CLOSES:
                assert await phone.until_closed() == POLICY, reason
            else:
                scene.obstacle.refuse = None
                assert (await phone.say(scene.bob, "still", f"after {reason}"))["type"] == "ACK", reason


@pytest.mark.parametrize("nonsense", ["{", "{}", '{"type":"DANCE"}'])
async def test_the_fourth_frame_that_makes_no_sense_closes(sqlite_open: OpenHouse, nonsense: str) -> None:
    async with a_scene(sqlite_open) as scene:
        for _ in range(3):
            await scene.phone.send(nonsense)
        await scene.phone.settled()
        await scene.phone.send(nonsense)
        assert await scene.phone.until_closed() == POLICY
        assert len([f for f in scene.phone.heard if f["type"] == "ERROR"]) == 4


AUTHS: list[tuple[Any, Refusal]] = [
    ({"type": "AUTH"}, Refusal.MISSING_TOKEN),
    ({"type": "AUTH", "token": ""}, Refusal.MISSING_TOKEN),
    ({"type": "AUTH", "token": "nonsense"}, Refusal.INVALID_TOKEN),
    ({"type": "AUTH", "token": "x" * 100_000}, Refusal.INVALID_TOKEN),
]


async def test_a_token_that_is_not_good_is_refused_and_the_connection_closed(sqlite_open: OpenHouse) -> None:
    async with a_scene(sqlite_open) as scene:
        old = scene.house.token(scene.bob)
        await scene.house.db.write(account_actions.log_out_everywhere, scene.bob)
        cases = [*AUTHS, ({"type": "AUTH", "token": old}, Refusal.SESSION_INVALID)]
        stale = scene.house.token(scene.cid)
        for auth, refusal in cases:
            phone = await scene.stranger()
            await phone.send(auth)
            assert (await phone.hear("AUTH_FAIL"))["reason"] == refusal.value
            assert await phone.until_closed() == POLICY
        scene.clock.advance(1801)
        phone = await scene.stranger()
        await phone.send({"type": "AUTH", "token": stale})
        assert (await phone.hear("AUTH_FAIL"))["reason"] == "invalid_token"


async def test_the_store_being_away_lets_nobody_in_and_refuses_nobody(sqlite_open: OpenHouse) -> None:
    async with a_scene(sqlite_open) as scene:
        scene.obstacle.refuse = StoreUnavailable()
        phone = await scene.stranger()
        await phone.send({"type": "AUTH", "token": scene.house.token(scene.bob)})
        assert (await phone.hear("ERROR"))["reason"] == "server_busy"
        scene.obstacle.refuse = None
        await phone.log_in(scene.house.token(scene.bob))


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "null",
        "[]",
        '"AUTH"',
        "5",
        '{"type":5}',
        '{"type":null}',
        '{"type":"SINGLE_CHAT","body":5}',
        '{"type":"ACK","serverMsgId":12345}',
        '{"type":"GROUP_CHAT","mentions":"ann"}',
        '{"type":"GROUP_CHAT","mentions":[1]}',
        json.dumps({"type": "GROUP_CHAT", "mentions": ["1"] * 51}),
        json.dumps({"type": "SINGLE_CHAT", "clientMsgId": "x" * 201}),
        '{"type":"SINGLE_CHAT","body":"a\\u0000b"}',
        '{"type":"SINGLE_CHAT","body":"\\ud800"}',
        '{"type":"PING"} {}',
        "{" * 50_000,
        b'{"type":"PING"}',  # a binary frame
    ],
)
async def test_what_cannot_be_read_is_bad_json(sqlite_house: House, sent: str | bytes) -> None:
    ann = await sqlite_house.user()
    async with sqlite_house.phone(ann) as at_ann:
        await at_ann.send(sent)
        assert (await at_ann.hear("ERROR"))["reason"] == "bad_json"
        await at_ann.settled()


async def test_a_body_is_counted_in_characters_and_kept_as_it_is(house: House) -> None:
    ann, bob = await house.users(2)
    body = "🎼" * 4096
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        assert (await at_ann.say(bob, body))["type"] == "ACK"
        assert (await at_ann.say(bob, body + "x"))["reason"] == "body_too_long"
        escaped = 'not \\u0000 but its spelling, "quotes", \x7f, \u2028'
        await at_ann.say(bob, escaped)
        assert [m["body"] for m in await at_bob.hear_messages(2)] == [body, escaped]


async def test_fields_that_nobody_knows_are_ignored_and_from_and_ts_are_the_servers(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        await at_ann.say(bob, "hello", **{"from": str(bob), "ts": 5, "msgSeq": "77", "colour": "red"})
        message = await at_bob.hear("SINGLE_CHAT")
        assert message["from"] == str(ann)
        assert message["ts"] > 5
        assert message["msgSeq"] == "1"
        assert "colour" not in message


async def test_ping_is_answered_before_auth_and_auth_again_only_answers(sqlite_house: House) -> None:
    house = sqlite_house
    ann, bob = await house.users(2)
    async with house.phone(bob) as at_bob:
        await at_bob.say(ann, "hello")
    phone = await Phone(house.ws, house.token(ann), acks=False).open()
    await phone.settled()
    await phone.log_in()
    await phone.hear_messages(1)
    for again in ("AUTH", "REAUTH"):
        at = len(phone.heard)
        await phone.send({"type": again, "token": phone.token})
        assert (await phone.hear("AUTH_OK", after=at))["from"] == str(ann)
    await phone.settled()
    assert len(phone.messages) == 1, "no second resend"


async def test_a_newer_token_prolongs_a_connection(sqlite_open: OpenHouse) -> None:
    async with a_scene(sqlite_open) as scene:
        scene.clock.advance(1700)
        await scene.phone.send({"type": "REAUTH", "token": scene.house.token(scene.ann)})
        await scene.phone.hear("AUTH_OK", after=1)
        scene.clock.advance(1700)
        await asyncio.sleep(1.5)  # a round passes
        await scene.phone.settled()
        scene.clock.advance(101)
        assert (await scene.phone.hear("ERROR"))["reason"] == "token_expired"


async def test_a_session_that_was_ended_in_another_process_is_told_by_the_next_poll(house: House) -> None:
    ann = await house.user()
    async with house.phone(ann) as at_ann:
        # as another process would: no event in this one
        await house.db.write(lambda tx: _raised_elsewhere(tx, ann))
        assert (await at_ann.hear("ERROR"))["reason"] == "session_invalid"


def _raised_elsewhere(tx: Any, user: int) -> None:
    account_actions.log_out_everywhere(tx, user)
    tx.events.clear()


async def test_nothing_is_done_for_a_connection_that_was_told_to_go(sqlite_open: OpenHouse) -> None:
    """Frames behind the one that closes change nothing."""
    async with a_scene(sqlite_open) as scene:
        phone = await scene.stranger()
        for _ in range(3):
            await phone.send({"type": "SINGLE_CHAT", "clientMsgId": "c", "to": str(scene.bob), "body": "x"})
        assert await phone.until_closed() == POLICY
        assert len(phone.heard) == 1
        await until(lambda: len(scene.house.room.gateway.online.connections) == 1)
