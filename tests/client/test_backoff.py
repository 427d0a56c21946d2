"""When to try again: the rules, without a network and without a clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.client.backoff import Backoff, Reachability

DRAW = st.floats(0, 1, exclude_max=True)
BACKOFF = Backoff(first=1.0, cap=60.0, least=0.2)


@given(failures=st.integers(1, 10_000), draw=DRAW)
def test_a_delay_lies_between_the_least_and_the_ceiling(failures: int, draw: float) -> None:
    delay = BACKOFF.delay(failures, draw)
    assert BACKOFF.least <= delay <= max(BACKOFF.least, BACKOFF.ceiling(failures)) <= BACKOFF.cap


def test_the_ceiling_doubles_until_the_cap() -> None:
    assert [BACKOFF.ceiling(n) for n in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]


@given(seconds=st.floats(0, 3600), draw=DRAW)
def test_what_the_server_asks_for_is_obeyed_and_spread_out(seconds: float, draw: float) -> None:
    state = Reachability(BACKOFF)
    state.asked_to_wait(0.0, draw, state.turn, seconds)
    assert seconds <= state.wait(0.0) <= seconds + max(BACKOFF.first, 1.0, 0.25 * seconds)
    assert state.online is True  # it answered


def test_requests_that_fail_together_count_once() -> None:
    state = Reachability(BACKOFF)
    state.answered()
    turn = state.turn
    for _ in range(20):
        state.unanswered(5.0, 0.5, turn)
    assert state.failures == 1


def test_a_failure_of_a_request_from_before_says_nothing_against_what_was_learned_since() -> None:
    state = Reachability(BACKOFF)
    before = state.turn
    state.answered()
    state.unanswered(5.0, 0.5, before)
    assert state.online is True
    assert state.wait(5.0) == 0


def test_an_answer_ends_the_back_off() -> None:
    state = Reachability(BACKOFF)
    for _ in range(5):
        state.unanswered(0.0, 0.999, state.turn)
    assert state.wait(0.0) > 8
    state.answered()
    assert (state.wait(0.0), state.failures, state.alone) == (0, 0, False)


def test_a_network_that_returns_lets_the_next_request_go_at_once_and_alone() -> None:
    state = Reachability(BACKOFF)
    for _ in range(5):
        state.unanswered(0.0, 0.999, state.turn)
    state.network_returned()
    assert state.wait(0.0) == 0
    assert state.alone
