"""The two kinds of names: their form, their order, and that no two are alike."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.clock import ManualClock, SystemClock
from holdfast.ids import MAX_ID, IdMaker, XidMaker, is_xid

MOMENTS = st.integers(min_value=0, max_value=(2**32 - 1) * 1000)


def decoded(xid: str) -> bytes:
    """By the book (base32hex, RFC 4648, section 7), not by our own code."""
    bits = "".join(f"{'0123456789abcdefghijklmnopqrstuv'.index(digit):05b}" for digit in xid)
    assert bits[96:] == "0000"
    return int(bits[:96], 2).to_bytes(12, "big")


@given(MOMENTS)
def test_an_xid_has_20_digits_and_says_the_second_it_was_made_in(moment: int) -> None:
    xid = XidMaker(ManualClock(moment))()
    assert is_xid(xid)
    assert int.from_bytes(decoded(xid)[:4]) == moment // 1000


@given(MOMENTS, MOMENTS)
def test_xids_of_different_seconds_sort_as_their_seconds(one: int, other: int) -> None:
    clock = ManualClock(one)
    make = XidMaker(clock)
    first = make()
    clock.set_wall(other)
    second = make()
    if one // 1000 != other // 1000:
        assert (first < second) == (one < other)
    assert first != second


def test_an_xid_keeps_its_machine_and_process_and_counts_on() -> None:
    make = XidMaker(ManualClock())
    made = [decoded(make()) for _ in range(1000)]
    assert len({raw[:9] for raw in made}) == 1
    counters = [int.from_bytes(raw[9:]) for raw in made]
    assert all((b - a) % 2**24 == 1 for a, b in itertools.pairwise(counters))


def test_two_makers_do_not_meet() -> None:
    clock = ManualClock()
    one, other = XidMaker(clock), XidMaker(clock)
    assert decoded(one())[4:7] != decoded(other())[4:7]


@pytest.mark.parametrize(
    "text", ["", "short", "0" * 19, "0" * 21, "0" * 19 + "w", "0" * 19 + "V", "0" * 20 + "\n", "０" * 20]
)
def test_what_is_no_xid_is_not_taken_for_one(text: str) -> None:
    assert not is_xid(text)


@given(st.lists(st.integers(min_value=-5000, max_value=5000), max_size=200))
def test_numbers_strictly_increase_whatever_the_clock_does(steps: list[int]) -> None:
    clock = ManualClock()
    make = IdMaker(clock)
    made = [make()]
    for step in steps:
        clock.set_wall(clock.now_ms() + step)
        made.append(make())
    assert all(0 < number <= MAX_ID for number in made)
    assert all(a < b for a, b in itertools.pairwise(made))


def test_numbers_are_positive_even_when_the_clock_was_never_set() -> None:
    assert IdMaker(ManualClock(0))() > 0


def test_a_burst_does_not_run_ahead_of_the_clock() -> None:
    """2 million in one millisecond still belong to it, so that the next process finds none of them taken."""
    clock = ManualClock()
    make = IdMaker(clock)
    first = make()
    assert (first + 2**21 - 1) >> 22 == first >> 22


@pytest.mark.parametrize("maker", [XidMaker, IdMaker])
def test_threads_never_get_the_same_name(maker: type[XidMaker | IdMaker]) -> None:
    make = maker(SystemClock())
    with ThreadPoolExecutor(8) as threads:
        lists = list(threads.map(lambda _: [make() for _ in range(5000)], range(8)))
    assert len({name for names in lists for name in names}) == 8 * 5000
