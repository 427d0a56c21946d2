"""Whatever a client sends: an answer or a close, never a stack; and nobody else notices."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.chat.frames import RENAMED, CannotRead, Frame, decode, encode, id_of
from holdfast.chat.reasons import STRIKES, WITHIN_SECONDS, Strikes
from holdfast.chat.states import TABLE, Life, State, Step
from tests.chat.conftest import House

TYPES = [*TABLE[State.OPEN], "ERROR", "AUTH_OK", "CALL_TIMEOUT", "auth", "", "x" * 200]
WORDS = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.integers(-(2**70), 2**70),
    st.integers(1, 2**63 - 1).map(str),
    st.floats(allow_nan=False),
    st.booleans(),
    st.lists(st.text(max_size=5), max_size=4),
    st.just("9" * 400),
    st.just({"nested": {}}),
)
FIELDS = st.sampled_from([RENAMED.get(name, name) for name in Frame.__struct_fields__ if name != "type"])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_cannot_be_read(data: bytes) -> None:
    try:
        frame = decode(data)
    except CannotRead:
        return
    assert decode(encode(frame)) == frame


@given(st.text(max_size=25))
def test_only_the_digits_of_a_63_bit_number_are_an_id(text: str) -> None:
    number = id_of(text)
    if number is not None:
        assert str(number) == text
        assert 0 < number < 2**63


@given(st.lists(st.sampled_from([*TYPES, None]), max_size=20))
def test_no_frame_leads_out_of_closing(types: list[str | None]) -> None:
    life = Life()
    for frame_type in types:
        if frame_type is None:
            life.closing()
        met = life.meet(frame_type or "")
        if life.state is State.CLOSING:
            assert met is Step.NOTHING


@given(st.lists(st.floats(0, 8), min_size=1, max_size=12))
def test_strikes_close_exactly_at_the_fourth_within_ten_seconds(gaps: list[float]) -> None:
    strikes, now, times = Strikes(), 0.0, []
    for gap in gaps:
        now += gap
        times.append(now)
        expected = len(times) >= STRIKES and now - times[-STRIKES] <= WITHIN_SECONDS
        assert strikes.strike(now) is expected


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    frames=st.lists(
        st.tuples(st.sampled_from(TYPES), st.dictionaries(FIELDS, WORDS, max_size=6)), min_size=1, max_size=12
    )
)
async def test_whatever_a_client_says_it_is_answered_or_closed_and_others_go_on(
    sqlite_cursors: House, frames: list[tuple[str, dict[str, Any]]]
) -> None:
    house = sqlite_cursors
    ann, bob, eve = await house.users(3)
    group = await house.group(ann, eve)
    async with house.phone(ann) as at_ann, house.phone(bob) as at_bob:
        at_eve = house.phone(eve)
        await at_eve.log_in()
        known = {"to": str(ann), "groupId": str(group), "clientMsgId": "c", "body": "hello"}
        for frame_type, fields in frames:
            if at_eve.closed.is_set():
                break
            try:
                await at_eve.send(json.dumps({**known, **fields, "type": frame_type}))
            except Exception:  # noqa: BLE001 - it was closed in this moment
                break
        assert (await at_ann.say(bob, "still here"))["type"] == "ACK"
        await at_bob.hear_messages(1)
        if not at_eve.closed.is_set():
            await at_eve.close()
        assert not [f for f in at_eve.heard if f.get("reason") == "internal_error"], at_eve.heard
    assert await house.problems() == []


def test_a_frame_keeps_what_it_does_not_know_out() -> None:
    assert decode(b'{"type":"PING","colour":"red"}') == Frame(type="PING")
