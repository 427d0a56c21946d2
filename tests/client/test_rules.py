"""The reactions to what a server can answer: tables, no server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chat.reasons import EFFECTS, Effect, Refusal
from holdfast.client.chat.rules import ENDINGS, Ending, Fate, Pace, contiguous, fate
from holdfast.client.ledger.rules import Reaction, is_mine, is_newer, reaction
from holdfast.client.library.model import Kind
from holdfast.client.library.rules import PushReaction, key_of, push_reaction


@pytest.mark.parametrize(
    ("status", "reason", "op", "expected"),
    [
        (201, "", "create", Reaction.DONE),
        (200, "", "update", Reaction.DONE),
        (200, "", "delete", Reaction.DONE),
        (404, "not_found", "delete", Reaction.DONE),
        (404, "deleted", "delete", Reaction.DONE),
        (404, "deleted", "create", Reaction.DROP),
        (404, "deleted", "update", Reaction.DROP),
        (404, "not_found", "update", Reaction.PARK),
        (409, "exists_mine", "create", Reaction.UPDATE),
        (409, "exists_mine", "update", Reaction.PARK),
        (409, "id_conflict", "create", Reaction.PARK),
        (400, "invalid_field", "create", Reaction.PARK),
        (403, "forbidden", "update", Reaction.PARK),
        (413, "too_large", "create", Reaction.PARK),
        (415, "wrong_type", "create", Reaction.PARK),
        (401, "token_expired", "create", Reaction.LATER),
        (429, "too_many_requests", "create", Reaction.LATER),
        (500, "action_failed", "update", Reaction.LATER),
        (503, "queue_full", "delete", Reaction.LATER),
    ],
)
def test_each_answer_to_a_row_has_one_reaction(status: int, reason: str, op: str, expected: Reaction) -> None:
    assert reaction(status, reason, op) is expected


def test_a_row_is_mine_if_i_made_it_or_nobody_has_a_name_yet() -> None:
    assert is_mine("7", "7")
    assert is_mine("", "7")
    assert not is_mine("8", "7")
    assert not is_mine("8", "")


@pytest.mark.parametrize(
    ("timestamp", "since", "version", "tombstone", "newer"),
    [(5, 4, 4, 4, True), (5, 5, 0, 0, False), (5, 0, 5, 0, False), (5, 0, 0, 5, False), (5, 0, 0, 0, True)],
)
def test_a_notification_has_to_be_newer_than_all_we_know(
    timestamp: int, since: int, version: int, tombstone: int, *, newer: bool
) -> None:
    assert is_newer(timestamp, since, version, tombstone) is newer


@pytest.mark.parametrize(
    ("status", "reason", "names_one", "reset", "expected"),
    [
        (412, "version_conflict", False, False, PushReaction.PULL),
        (412, "version_conflict", False, True, PushReaction.START_OVER),
        (409, "idempotency_key_reused", False, False, PushReaction.AGAIN),
        (409, "file_missing", True, False, PushReaction.UPLOAD),
        (409, "key_taken", True, False, PushReaction.PARK),
        (400, "invalid_change", True, False, PushReaction.PARK),
        (400, "malformed", False, False, PushReaction.HALVE),
        (413, "too_large", False, False, PushReaction.HALVE),
    ],
)
def test_each_answer_to_a_push_has_one_reaction(
    status: int, reason: str, *, names_one: bool, reset: bool, expected: PushReaction
) -> None:
    assert push_reaction(status, reason, names_one=names_one, reset=reset) is expected


def test_a_missing_composer_is_an_empty_one() -> None:
    keys = {
        key_of(Kind.SCORE, data, None, None)
        for data in ({"title": "A"}, {"title": "A", "composer": None}, {"title": "A", "composer": ""})
    }
    assert len(keys) == 1


def test_every_reason_that_closes_the_chat_has_a_reaction_and_no_other_has() -> None:
    closing = {reason.value for reason, effect in EFFECTS.items() if effect is Effect.CLOSES}
    assert set(ENDINGS) == closing | {refusal.value for refusal in Refusal}


def test_reconnecting_does_not_throw_out_whoever_is_newer() -> None:
    assert ENDINGS["kicked"] is Ending.STOP


def test_only_a_server_in_trouble_gets_the_same_message_again() -> None:
    staying = {reason.value for reason, effect in EFFECTS.items() if effect is not Effect.CLOSES}
    assert {reason for reason in staying if fate(reason) is Fate.LATER} == {"server_busy", "internal_error"}


@given(start=st.integers(0, 20), seqs=st.sets(st.integers(1, 60)))
def test_the_contiguous_prefix_ends_before_the_first_gap(start: int, seqs: set[int]) -> None:
    above = sorted(seq for seq in seqs if seq > start)
    reached = contiguous(start, above)
    assert set(range(start + 1, reached + 1)) <= seqs
    assert reached + 1 not in seqs


def test_a_long_queue_goes_out_below_what_the_server_takes() -> None:
    pace, now, sent = Pace(), 100.0, list[float]()
    while len(sent) < 400:
        wait = pace.wait(now)
        if wait:
            now += wait
        else:
            sent.append(now)
    for first in range(len(sent) - 60):  # the server takes 60 at once and 30 a second
        assert sent[first + 60] - sent[first] >= 1.0
