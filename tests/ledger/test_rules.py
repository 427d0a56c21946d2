"""The ledger's decisions: what a field may hold, and when two contents are the same."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidField
from holdfast.ledger.listing import FIRST, LAST, cursor, place
from holdfast.ledger.model import Bill, as_json
from holdfast.ledger.rules import checked_money, checked_text, moment_ms, next_upd_ms

# -- money


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("50", "50"), ("50.00", "50.00"), ("0.1", "0.1"), ("-12.5", "-12.5"), ("1e3", "1000"), ("1.10E2", "110"),
        ("0", "0"), ("-0.00", "0.00"), ("0e5", "0"), ("123456789012345", "123456789012345"), ("0.0001", "0.0001"),
        ("99999999999.9999", "99999999999.9999"), ("1e14", "100000000000000"),
    ],
)  # fmt: skip
def test_money_keeps_its_digits(sent: str, kept: str) -> None:
    assert checked_money(Decimal(sent)) == kept


@pytest.mark.parametrize(
    "sent",
    [
        "1.00001",
        "1234567890123456",
        "123456789012345.1",
        "1e15",
        "1e400",
        "1e-5",
        "NaN",
        "-Infinity",
        "1E+999999",
    ],
)
def test_money_that_cannot_be_kept_exactly_is_refused(sent: str) -> None:
    with pytest.raises(InvalidField) as caught:
        checked_money(Decimal(sent))
    assert caught.value.field == "money"


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**10), max_value=10**10))
def test_money_comes_back_as_the_number_it_was(sent: Decimal) -> None:
    kept = checked_money(sent)
    assert Decimal(kept) == sent
    sent_again = as_json(Decimal(kept))
    assert sent_again == kept.encode()
    assert msgspec.json.decode(sent_again, type=Decimal) == sent


@given(st.decimals())
def test_any_number_is_kept_exactly_or_refused(sent: Decimal) -> None:
    try:
        kept = checked_money(sent)
    except InvalidField:
        return
    assert Decimal(kept) == sent
    assert len(kept) <= 17


# -- times


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-18", datetime(2026, 2, 18, tzinfo=UTC)),
        ("2026-02-18T06:00:00Z", datetime(2026, 2, 18, 6, tzinfo=UTC)),
        ("2026-02-18t06:00:00.5z", datetime(2026, 2, 18, 6, 0, 0, 500_000, UTC)),
        ("2026-02-18T06:00:00.123456789+08:00", datetime(2026, 2, 17, 22, 0, 0, 123_000, UTC)),
        ("1969-12-31T23:59:59.999Z", datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
        ("0001-01-01", datetime(1, 1, 1, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_date_or_a_moment(text: str, moment: datetime) -> None:
    assert moment_ms("time", text) == round(
        (moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-2-18", "2026-02-30", "2025-02-29", "20260218", "2026-02-18T06:00:00", "2026-02-18 06:00:00Z",
        "2026-02-18T24:00:00Z", "2026-02-18T06:00Z", "2026-02-18T06:00:00+8", "2026-02-18T06:00:00+24:00",
        "2026-W08-3", "0000-01-01", "\u0662026-02-18", "2026-02-18\n", "yesterday", "2026-02-18T06:00:00.Z",
    ],
)  # fmt: skip
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(InvalidField):
        moment_ms("time", text)


@given(st.integers(-(10**13), 10**14), st.integers(-1439, 1439))
def test_a_moment_is_the_same_in_every_zone(ms: int, minutes: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    text = moment.astimezone(timezone(timedelta(minutes=minutes))).isoformat(timespec="milliseconds")
    assert moment_ms("time", text) == ms


def test_the_end_of_a_day_is_its_last_millisecond() -> None:
    assert moment_ms("to", "2026-02-18", end_of_day=True) == moment_ms("to", "2026-02-18T23:59:59.999Z")
    moment = "2026-02-18T10:00:00Z"
    assert moment_ms("to", moment, end_of_day=True) == moment_ms("to", moment)


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    with suppress(InvalidField):
        assert isinstance(moment_ms("time", text), int)


@given(st.integers(0, 10), st.lists(st.integers(-3, 20)))
def test_a_revisions_time_never_repeats_whatever_the_clock_does(first: int, readings: list[int]) -> None:
    times = [first]
    for now in readings:
        times.append(next_upd_ms(now, times[-1]))
    assert times == sorted(set(times))


# -- texts


@pytest.mark.parametrize("text", ["", "a", "ü" * 10, "家庭账本", "👨‍👩‍👧", "a\u200db"])
def test_texts_that_are_fine(text: str) -> None:
    assert checked_text("name", text, 10) == text


@pytest.mark.parametrize("text", ["a" * 11, "a\x00", "\x1b[31m", "a\nb", "a\x7f", "\x85", "\ud800"])
def test_texts_that_are_not(text: str) -> None:
    with pytest.raises(InvalidField):
        checked_text("name", text, 10)


def test_a_remark_may_have_lines_and_a_name_must_not_be_empty() -> None:
    assert checked_text("remark", "a\r\n\tb", 10, lines=True)
    with pytest.raises(InvalidField):
        checked_text("remark", "a\x00b", 10, lines=True)
    with pytest.raises(InvalidField):
        checked_text("name", "", 10, least=1)


# -- cursors


@given(st.integers(FIRST, LAST), st.text("0123456789abcdefghijklmnopqrstuv", min_size=20, max_size=20))
def test_a_cursor_says_where_it_came_from(time_ms: int, id_: str) -> None:
    assert place(cursor(time_ms, id_)) == (time_ms, id_)


@given(st.text(max_size=40))
def test_any_other_text_is_no_cursor(text: str) -> None:
    with suppress(InvalidField):
        found = place(text)
        assert place(cursor(*found)) == found


def test_an_entity_leaves_out_what_it_does_not_have() -> None:
    bill = Bill(
        id="i", book_id="b", money=Decimal("1.50"), type=1, category="c", time="2026-02-18", crt_user="1", images=(),
        crt_time="t", upd_time="t",
    )  # fmt: skip
    assert as_json(bill) == (
        b'{"_id":"i","book_id":"b","money":1.50,"type":1,"category":"c","time":"2026-02-18","crt_user":"1",'
        b'"images":[],"crt_time":"t","upd_time":"t"}'
    )
