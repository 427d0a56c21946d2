"""An Idempotency-Key: the same push again gets the first answer, also when both are under way at once."""

from __future__ import annotations

import asyncio

import pytest

from tests.library.conftest import Device, House, part, score
from tests.library.shared import ann, bob, house, stores

__all__ = ["ann", "bob", "house", "stores"]  # the fixtures of this module

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = {"Idempotency-Key": "k1"}


async def test_a_push_sent_again_gets_the_first_answer_though_the_version_has_moved_on(ann: Device) -> None:
    first = await ann.push(0, KEY, scores=[score("a", "A"), score("b", "B")])
    await ann.push(2, scores=[score("c", "C")])
    assert await ann.push(0, KEY, scores=[score("a", "A"), score("b", "B")]) == first
    assert (await ann.pull())["libraryVersion"] == 3


async def test_without_a_key_it_is_412(ann: Device) -> None:
    await ann.push(0, scores=[score("a", "A")])
    await ann.refused(412, "version_conflict", 0, scores=[score("a", "A")])


async def test_the_same_push_ten_times_at_once_is_taken_once_and_answered_alike(ann: Device) -> None:
    body = [score("a", "A")]
    answers = await asyncio.gather(*(ann.push(0, KEY, scores=body) for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert (await ann.pull())["libraryVersion"] == 1


async def test_another_body_under_the_key_is_409_and_another_user_may_use_it(
    ann: Device, bob: Device
) -> None:
    await ann.push(0, KEY, scores=[score("a", "A")])
    await ann.refused(409, "idempotency_key_reused", 1, KEY, scores=[score("b", "B")])
    assert (await bob.push(0, KEY, scores=[score("b", "B")]))["newLibraryVersion"] == 1


async def test_what_was_refused_is_not_kept_and_may_be_sent_again(ann: Device) -> None:
    await ann.push(0, scores=[score("a", "A")])
    late = {"clientLibraryVersion": 0, "scores": [score("b", "B")]}
    assert (await ann.push_raw(late, KEY)).status_code == 412
    await ann.push(1, KEY, scores=[score("b", "B")])
    missing = [part("A", "v", "I", pdfHash="0" * 32)]
    await ann.refused(409, "file_missing", 2, {"Idempotency-Key": "k2"}, instrumentScores=missing)
    await ann.push(2, {"Idempotency-Key": "k2"}, instrumentScores=[part("A", "v", "I")])


async def test_the_answer_is_kept_for_a_day(house: House, ann: Device) -> None:
    first = await ann.push(0, KEY, scores=[score("a", "A")])
    house.clock.advance(23 * 3600)
    assert await ann.push(0, KEY, scores=[score("a", "A")]) == first
    house.clock.advance(2 * 3600)
    await ann.refused(412, "version_conflict", 0, KEY, scores=[score("a", "A")])
