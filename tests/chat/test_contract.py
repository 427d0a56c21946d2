"""The page about chat says what is so: each frame on it is one that the server takes, or one that it really sends."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from holdfast.chat.frames import RENAMED, Frame, decode
from holdfast.chat.reasons import EFFECTS, Effect, Reason
from holdfast.chat.states import TABLE, State, Step
from holdfast.settings.chat import Group
from tests.chat.conftest import QUICK, OpenHouse
from tests.chat.phone import Phone

PAGE = Path(__file__).parents[2] / "docs" / "chat.md"
EXAMPLE = re.compile(r"^```json (client|server)\n(.+?)\n```$", re.M | re.S)
FIELDS = {RENAMED.get(field, field) for field in Frame.__struct_fields__}

Shape = frozenset[tuple[str, str]]


def examples(side: str) -> list[dict[str, Any]]:
    return [json.loads(text) for who, text in EXAMPLE.findall(PAGE.read_text("utf-8")) if who == side]


def shape(frame: dict[str, Any]) -> Shape:
    """Its fields and their types; and what kind of ACK or placeholder it is."""
    fields = {(name, type(value).__name__) for name, value in frame.items()}
    for name in ("type", "ackType"):
        if name in frame:
            fields.add((name, str(frame[name])))
    if frame.get("msgType") == "REVOKED":
        fields.add(("msgType", "REVOKED"))
    return frozenset(fields)


def test_each_frame_of_a_client_is_taken_as_the_page_shows_it() -> None:
    shown = examples("client")
    for frame in shown:
        assert frame.keys() <= FIELDS
        decode(json.dumps(frame).encode())
        assert isinstance(TABLE[State.OPEN][frame["type"]], Step)
    assert {frame["type"] for frame in shown} == TABLE[State.OPEN].keys()


def test_each_reason_stands_on_the_page_beside_what_it_does() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    for reason in Reason:
        (row,) = [row for row in rows if f"`{reason.value}`" in row]
        effect = EFFECTS[reason]
        assert ("| closes" in row) == (effect is Effect.CLOSES)
        assert ("4th within 10 s" in row) == (effect is Effect.STRIKES)


async def test_each_frame_of_the_server_is_sent_as_the_page_shows_it(sqlite_open: OpenHouse) -> None:
    heard: list[dict[str, Any]] = []
    chat = msgspec.structs.replace(QUICK, ping_seconds=1.0, ring_seconds=4.0)
    async with sqlite_open(chat) as house:
        ann, bob, cid = await house.users(3)
        group = await house.group(ann, bob)
        async with house.phone(ann) as at_ann, house.phone(bob, acks=False) as at_bob:
            await talk(at_ann, at_bob, bob, group)
            await call(at_ann, at_bob, bob, cid)
            await at_ann.hear("PING")
            heard += at_ann.heard + at_bob.heard
        async with house.phone(bob) as at_bob:  # a backlog with a placeholder
            await at_bob.hear_messages(2)
            heard += at_bob.heard
        stranger = await Phone(house.ws).open()
        await stranger.send({"type": "AUTH", "token": "nonsense"})
        heard.append(await stranger.hear("AUTH_FAIL"))
        await stranger.close()
    async with sqlite_open(msgspec.structs.replace(QUICK, group=Group(mode="notify"))) as house:
        ann, bob = await house.users(2)
        group = await house.group(ann, bob)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            await at_ann.say_to_group(group, "hello")
            heard.append(await at_bob.hear("GROUP_NOTIFY"))
    sent = {shape(frame) for frame in heard}
    types = {frame["type"] for frame in heard}
    for example in examples("server"):
        assert shape(example) in sent, (
            f"never sent like this: {example}\n{[f for f in heard if f['type'] == example['type']]}"
        )
        types.discard(example["type"])
    assert types == set(), "sent, and not on the page"


async def talk(at_ann: Phone, at_bob: Phone, bob: int, group: int) -> None:
    await at_ann.settled()
    single = await at_ann.say(bob, "Hello!")
    theirs = await at_bob.say_to_group(group, "before")
    in_group = await at_ann.say_to_group(
        group, "Bob?", mentions=[str(bob)], replyToServerMsgId=theirs["serverMsgId"]
    )
    for message in await at_bob.hear_messages(2):
        for ack_type in ("delivered", "read"):
            await at_bob.ack(message, ack_type)
            await at_ann.hear(
                lambda f, message=message, ack_type=ack_type: (
                    f.get("ackType") == ack_type and f["serverMsgId"] == message["serverMsgId"]
                )
            )
    for ack in (single, in_group):
        await at_ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": ack["serverMsgId"]})
        await at_bob.hear(
            lambda f, ack=ack: f["type"] == "MESSAGE_REVOKED" and f["serverMsgId"] == ack["serverMsgId"]
        )
    await at_ann.say(bob, "x" * 5_000)
    gone = await at_ann.say(bob, "never mind")
    await at_ann.say(bob, "last")
    await at_ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": gone["serverMsgId"]})
    await at_bob.hear_messages(4)


async def call(at_ann: Phone, at_bob: Phone, bob: int, cid: int) -> None:
    async def ring() -> str:
        at = len(at_bob.heard)
        await at_ann.send(
            {"type": "CALL_INVITE", "clientMsgId": "5a30", "to": str(bob), "callKind": "video", "sdp": "v=0"}
        )
        found: str = (await at_bob.hear("CALL_INVITE", after=at))["callId"]
        return found

    call_id = await ring()
    await at_bob.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": "v=0"})
    await at_ann.hear("CALL_ACCEPT")
    ice = {"iceCandidate": "candidate:1", "iceSdpMid": "0", "iceSdpMLineIndex": 0}
    await at_ann.send({"type": "CALL_ICE", "callId": call_id, **ice})
    await at_bob.hear("CALL_ICE")
    await at_ann.send({"type": "CALL_END", "callId": call_id, "callReason": "bye"})
    await at_bob.hear("CALL_END")
    await at_bob.send({"type": "CALL_REJECT", "callId": await ring()})
    await at_ann.hear("CALL_REJECT")
    await at_ann.send({"type": "CALL_CANCEL", "callId": await ring()})
    await at_bob.hear("CALL_CANCEL")
    await ring()
    await at_bob.hear("CALL_TIMEOUT")
    await at_ann.send({"type": "CALL_INVITE", "clientMsgId": "5a30", "to": str(cid)})
    await at_ann.hear("CALL_ERROR")
    await asyncio.sleep(0)
