"""How often passwords may be tried, and what an attacker can make the throttle remember."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.accounts.throttle import KNOWN_PLACES, WIDE, Throttle, place_of
from holdfast.clock import ManualClock
from holdfast.errors import TooManyLogins

V4, OTHER = "192.0.2.1", "198.51.100.7"


def fail(throttle: Throttle, name: str, address: str, times: int = 1) -> None:
    for _ in range(times):
        throttle.begin(name, address)


def test_five_failures_in_any_minute_and_the_sixth_waits_for_the_first_to_be_forgotten() -> None:
    clock = ManualClock()
    throttle = Throttle(clock, 5)
    for _ in range(5):
        fail(throttle, "ann", V4)
        clock.advance(10)
    with pytest.raises(TooManyLogins) as refused:
        throttle.begin("ann", V4)
    assert refused.value.retry_after == 10
    clock.advance(10)
    fail(throttle, "ann", V4)
    with pytest.raises(TooManyLogins) as refused:
        throttle.begin("ann", V4)
    assert refused.value.retry_after == 10


def test_a_refused_try_does_not_prolong_the_wait() -> None:
    clock = ManualClock()
    throttle = Throttle(clock, 5)
    fail(throttle, "ann", V4, 5)
    for _ in range(59):
        clock.advance(1)
        with pytest.raises(TooManyLogins):
            throttle.begin("ann", V4)
    clock.advance(1)
    fail(throttle, "ann", V4, 5)


def test_other_names_and_other_addresses_are_not_touched() -> None:
    throttle = Throttle(ManualClock(), 5)
    fail(throttle, "ann", V4, 5)
    fail(throttle, "bob", V4, 5)
    fail(throttle, "ann", OTHER, 5)


def test_a_success_takes_back_itself_and_no_failure() -> None:
    throttle = Throttle(ManualClock(), 5)
    fail(throttle, "ann", V4, 4)
    for _ in range(20):
        throttle.begin("ann", V4).succeeded()
    fail(throttle, "ann", V4)
    with pytest.raises(TooManyLogins):
        throttle.begin("ann", V4)


def test_tries_at_the_same_time_count_before_they_have_failed() -> None:
    throttle = Throttle(ManualClock(), 5)
    under_way = [throttle.begin("ann", V4) for _ in range(5)]
    with pytest.raises(TooManyLogins):
        throttle.begin("ann", V4)
    under_way[0].never_mind()
    throttle.begin("ann", V4)


def test_whoever_rotates_names_is_stopped_by_the_address() -> None:
    throttle = Throttle(ManualClock(), 5)
    for number in range(5 * WIDE):
        fail(throttle, f"name {number}", V4)
    with pytest.raises(TooManyLogins):
        throttle.begin("yet another", V4)
    throttle.begin("yet another", OTHER)


def test_whoever_rotates_ipv6_addresses_of_one_network_is_one_attacker() -> None:
    throttle = Throttle(ManualClock(), 5)
    for number in range(5):
        fail(throttle, "ann", f"2001:db8:1:1::{number:x}")
    with pytest.raises(TooManyLogins):
        throttle.begin("ann", "2001:db8:1:1:ffff::1")
    for number in range(5 * WIDE - 5):
        fail(throttle, f"name {number}", f"2001:db8:1:{number:x}::1")
    with pytest.raises(TooManyLogins):
        throttle.begin("bob", "2001:db8:1:abcd::1")
    throttle.begin("bob", "2001:db8:2::1")


def test_whoever_rotates_addresses_is_stopped_by_the_name_but_the_users_own_places_stay_open() -> None:
    throttle = Throttle(ManualClock(), 5)
    throttle.begin("ann", V4).succeeded()
    for number in range(5 * WIDE):
        fail(throttle, "ann", f"203.0.{number // 250}.{number % 250}")
    with pytest.raises(TooManyLogins):
        throttle.begin("ann", OTHER)
    throttle.begin("ann", V4).succeeded()
    throttle.begin("bob", OTHER)


def test_what_is_remembered_is_bounded_and_forgotten_after_its_minute() -> None:
    clock = ManualClock()
    throttle = Throttle(clock, 5, limit=100)
    for number in range(10_000):
        fail(throttle, f"name {number}", f"2001:db8:{number:x}::1")
    assert throttle.remembered <= 100
    clock.advance(61)
    throttle.begin("ann", V4).succeeded()
    assert throttle.remembered == 1
    for number in range(KNOWN_PLACES + 10):
        throttle.begin(f"name {number}", f"2001:db8:{number % 65536:x}:{number // 65536}::1").succeeded()
    assert throttle.remembered == KNOWN_PLACES


@pytest.mark.parametrize(
    ("address", "place", "network"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/64", "fe80::/48"),
        ("", "", ""),
        ("not an address" * 100, ("not an address" * 100)[:64], ("not an address" * 100)[:64]),
    ],
)
def test_places(address: str, place: str, network: str) -> None:
    assert place_of(address) == (place, network)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", ""]),
            st.sampled_from([V4, OTHER, "2001:db8::1"]),
            st.sampled_from(["fail", "succeed", "give up"]),
            st.floats(0, 40),
        ),
        max_size=80,
    )
)
def test_no_order_of_tries_lets_more_than_five_failures_through_in_a_minute(
    tries: list[tuple[str, str, str, float]],
) -> None:
    clock = ManualClock()
    throttle = Throttle(clock, 5)
    failures: list[tuple[str, str, float]] = []
    waits: list[float] = []
    for name, address, outcome, wait in tries:
        clock.advance(wait)
        now = clock.monotonic()
        recent = sum(1 for each in failures if each[:2] == (name, address) and each[2] > now - 60)
        try:
            attempt = throttle.begin(name, address)
        except TooManyLogins as refused:
            waits.append(refused.retry_after or 0)
            assert recent == 5
            continue
        assert recent < 5
        if outcome == "fail":
            failures.append((name, address, now))
        elif outcome == "succeed":
            attempt.succeeded()
        else:
            attempt.never_mind()
    assert all(0 < wait <= 60 for wait in waits)
