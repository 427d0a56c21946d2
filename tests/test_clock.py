"""The one clock, and the one spelling of time on the wire."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from holdfast.clock import ManualClock, SystemClock, rfc3339


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_times_on_the_wire_are_rfc_3339_in_utc_to_the_millisecond(moment: int) -> None:
    text = rfc3339(moment)
    assert text.endswith("Z")
    assert len(text) == 24
    read = datetime.fromisoformat(text)
    assert read.tzinfo == UTC
    whole, millis = divmod(moment, 1000)
    assert read == datetime.fromtimestamp(whole, UTC).replace(microsecond=millis * 1000)


def test_an_example_of_the_specification() -> None:
    assert rfc3339(1_771_394_400_123) == "2026-02-18T06:00:00.123Z"


def test_the_system_clock_is_the_systems() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 1000
    before = clock.monotonic()
    assert clock.monotonic() >= before


def test_setting_the_wall_clock_back_does_not_touch_durations() -> None:
    clock = ManualClock(10_000)
    clock.advance(1.5)
    assert (clock.now_ms(), clock.monotonic()) == (11_500, 1.5)
    clock.set_wall(5_000)
    assert (clock.now_ms(), clock.monotonic()) == (5_000, 1.5)
