"""Calls between two: what each side hears, and what the log of calls keeps."""

from __future__ import annotations

from itertools import product
from typing import Any

import msgspec
import pytest

from holdfast.chat.calls import LIVE, Act, CallState, Why, after
from holdfast.chat.model import Call
from holdfast.clock import ManualClock
from tests.chat.conftest import QUICK, House, OpenHouse, until
from tests.chat.phone import Phone

CALLER, CALLEE, STRANGER, SERVER = 1, 2, 3, 0


async def rings(at_ann: Phone, at_bob: Phone, bob: int, **more: Any) -> str:
    """Ann calls bob; answers the call's id when it rings."""
    at, there = len(at_ann.heard), len(at_bob.heard)
    await at_ann.send({"type": "CALL_INVITE", "to": str(bob), "callKind": "video", "sdp": "offer", **more})
    made = await at_ann.hear("CALL_INVITE_OK", after=at)
    call = await at_bob.hear("CALL_INVITE", after=there)
    assert made["callId"] == call["callId"]
    return str(call["callId"])


async def records(house: House, user: int, **parameters: str) -> list[dict[str, Any]]:
    async with house.http(user) as http:
        answer = await http.get("/call/record/cursor", params=parameters)
        found: list[dict[str, Any]] = answer.json()["data"]["items"]
        return found


async def test_a_call_from_its_offer_to_its_end(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        call = await rings(at_ann, at_bob, bob, clientMsgId="mine")
        offered = await at_bob.hear("CALL_INVITE")
        assert (offered["from"], offered["callKind"], offered["sdp"]) == (str(ann), "video", "offer")
        assert (await at_ann.hear("CALL_INVITE_OK"))["clientMsgId"] == "mine"
        await at_bob.send({"type": "CALL_ACCEPT", "callId": call, "sdp": "answer"})
        accepted = await at_ann.hear("CALL_ACCEPT")
        assert (accepted["callId"], accepted["from"], accepted["sdp"]) == (call, str(bob), "answer")
        ice = {"iceCandidate": "candidate:1", "iceSdpMid": "0", "iceSdpMLineIndex": 0}
        for here, there in ((at_ann, at_bob), (at_bob, at_ann)):
            await here.send({"type": "CALL_ICE", "callId": call, **ice})
            heard = await there.hear("CALL_ICE")
            assert {key: heard[key] for key in ice} == ice
        await at_ann.send({"type": "CALL_END", "callId": call, "callReason": "bye"})
        assert (await at_bob.hear("CALL_END"))["callReason"] == "bye"
        (record,) = await records(house, bob)
        assert (record["state"], record["callReason"], record["callKind"]) == ("ended", "bye", "video")
        assert record["acceptedAt"] <= record["endedAt"]
        assert await house.problems() == []
        await rings(at_bob, at_ann, ann)  # both are free again


@pytest.mark.parametrize(
    ("who", "says", "state"),
    [
        ("callee", "CALL_REJECT", "rejected"),
        ("callee", "CALL_END", "rejected"),
        ("caller", "CALL_CANCEL", "cancelled"),
        ("caller", "CALL_END", "cancelled"),
    ],
)
async def test_a_call_that_is_not_answered_is_over_for_both(
    house: House, who: str, says: str, state: str
) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        call = await rings(at_ann, at_bob, bob)
        here, there = (at_bob, at_ann) if who == "callee" else (at_ann, at_bob)
        await here.send({"type": says, "callId": call})
        await there.hear(says)
        await here.send({"type": says, "callId": call})  # again is harmless
        await at_bob.send({"type": "CALL_ACCEPT", "callId": call})
        assert (await at_bob.hear("CALL_ERROR"))["callReason"] == "over"
        assert [record["state"] for record in await records(house, ann)] == [state]
        await here.settled()
        assert len([f for f in there.heard if f["type"] == says]) == 1


async def test_nobody_is_in_two_calls(house: House) -> None:
    ann, bob, cid = await house.users(3)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.phone(cid) as at_cid:
        await rings(at_ann, at_bob, bob)
        for callee in (ann, bob):
            at = len(at_cid.heard)
            await at_cid.send({"type": "CALL_INVITE", "to": str(callee)})
            assert (await at_cid.hear("CALL_ERROR", after=at))["callReason"] == "busy"
        at = len(at_ann.heard)
        await at_ann.send({"type": "CALL_INVITE", "to": str(cid)})
        assert (await at_ann.hear("CALL_ERROR", after=at))["callReason"] == "busy"
        assert sorted(record["state"] for record in await records(house, cid)) == ["busy"] * 3
        assert await house.problems() == []


async def test_who_is_away_or_does_not_exist_cannot_be_called(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann:
        for callee, why in ((str(bob), "offline"), ("12345", "not_found"), ("bob", "not_found")):
            at = len(at_ann.heard)
            await at_ann.send({"type": "CALL_INVITE", "to": callee, "clientMsgId": callee})
            error = await at_ann.hear("CALL_ERROR", after=at)
            assert (error["callReason"], error["clientMsgId"]) == (why, callee)
        assert [record["state"] for record in await records(house, bob)] == ["offline"]
        await at_ann.send({"type": "CALL_INVITE", "to": str(ann)})
        assert (await at_ann.hear("ERROR"))["reason"] == "cannot_send_to_self"


async def test_a_stranger_has_no_part_in_a_call(house: House) -> None:
    ann, bob, eve = await house.users(3)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob, house.phone(eve) as at_eve:
        call = await rings(at_ann, at_bob, bob)
        for says in ("CALL_ACCEPT", "CALL_REJECT", "CALL_CANCEL", "CALL_END", "CALL_ICE"):
            for call_id in (call, "12345", "x", None):
                at = len(at_eve.heard)
                await at_eve.send({"type": says, "callId": call_id})
                assert (await at_eve.hear("CALL_ERROR", after=at))["callReason"] == "not_found"
        await at_ann.settled()
        await at_bob.settled()
        assert {f["type"] for f in at_bob.heard} == {"AUTH_OK", "CALL_INVITE", "PONG"}
        assert await records(house, eve) == []


async def test_a_call_rings_for_a_while_and_is_missed(open_house: OpenHouse) -> None:
    async with open_house(msgspec.structs.replace(QUICK, ring_seconds=0.2)) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            call = await rings(at_ann, at_bob, bob)
            for phone in (at_ann, at_bob):
                assert (await phone.hear("CALL_TIMEOUT"))["callId"] == call
            assert [record["state"] for record in await records(house, bob)] == ["missed"]


@pytest.mark.parametrize("accepted", [False, True])
async def test_a_call_whose_process_died_does_not_keep_its_people_busy(
    open_house: OpenHouse, accepted: bool
) -> None:
    clock = ManualClock()
    async with open_house(clock=clock) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
            call = await rings(at_ann, at_bob, bob)
            if accepted:
                await at_bob.send({"type": "CALL_ACCEPT", "callId": call})
                await at_ann.hear("CALL_ACCEPT")
    async with open_house(clock=clock) as house:
        clock.advance(46)
        await house.room.gateway.calling.look()
        state = "ended" if accepted else "missed"
        assert [record["state"] for record in await records(house, bob)] == [state]
        assert await house.problems() == []


async def test_a_side_that_comes_back_in_time_stays_in_its_call(open_house: OpenHouse) -> None:
    clock = ManualClock()
    async with open_house(clock=clock) as house:
        ann, bob = await house.users(2)
        async with house.phone(ann) as at_ann:
            async with house.phone(bob) as at_bob:
                call = await rings(at_ann, at_bob, bob)
                await at_bob.send({"type": "CALL_ACCEPT", "callId": call})
                await at_ann.hear("CALL_ACCEPT")
            look = house.room.gateway.calling.look
            clock.advance(30)
            await look()
            async with house.phone(bob) as at_bob:
                clock.advance(10)
                await look()
                clock.advance(30)
                await look()
                await at_ann.settled()
                assert [f for f in at_ann.heard if f["type"] == "CALL_END"] == []
            await until(lambda: not house.room.gateway.online.of(bob))
            clock.advance(46)
            await look()
            assert (await at_ann.hear("CALL_END"))["callReason"] == "lost"


async def test_calls_are_listed_latest_first_in_pages(house: House) -> None:
    ann, bob = await house.users(2)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        made = []
        for here, there, callee in ((at_ann, at_bob, bob), (at_bob, at_ann, ann), (at_ann, at_bob, bob)):
            call = await rings(here, there, callee)
            await here.send({"type": "CALL_CANCEL", "callId": call})
            await there.hear(lambda f, call=call: f["type"] == "CALL_CANCEL" and f["callId"] == call)
            made.append(call)
        first = await records(house, ann, limit="2")
        rest = await records(house, ann, limit="2", lastId=first[-1]["callId"])
        assert [record["callId"] for record in [*first, *rest]] == made[::-1]


# -- the table


def test_no_act_leads_out_of_the_table() -> None:
    for state, act, user in product(CallState, Act, (SERVER, CALLER, CALLEE, STRANGER)):
        found = after(Call(1, CALLER, CALLEE, "audio", state, 0, None, None, None), act, user)
        if user == STRANGER:
            assert found is Why.NOT_FOUND
        elif state not in LIVE:
            assert found in (None, Why.OVER, Why.NOT_ALLOWED)
        elif state is CallState.ACCEPTED:
            assert found in (None, CallState.ENDED, Why.NOT_ALLOWED)
        if found is CallState.ACCEPTED:
            assert (state, act) == (CallState.RINGING, Act.ACCEPT)
            assert user != CALLER
