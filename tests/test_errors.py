"""One tree of errors: numbers and words that never mean two things, a sentence for each."""

from __future__ import annotations

import re

import pytest

from holdfast.errors import DiskFull, HoldfastError, InvalidField, QueueFull, Unavailable, catalogue


def test_every_code_is_its_status_and_a_number() -> None:
    for code, kind in catalogue().items():
        assert code == kind.status * 100 + kind.number == kind.code()
        assert 400 <= kind.status < 600
        assert kind.status != 422
        assert 0 <= kind.number < 100


def test_no_two_codes_share_a_reason_and_every_reason_is_a_word() -> None:
    reasons = [kind.reason for kind in catalogue().values()]
    assert len(set(reasons)) == len(reasons)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", reason) for reason in reasons)


def test_every_error_has_a_sentence_of_its_own() -> None:
    sentences = [kind.__doc__ for kind in catalogue().values()]
    assert all(
        (sentence and sentence.rstrip().endswith(".")) or ":" in sentence
        for sentence in sentences
        if sentence
    )
    assert len(set(sentences)) == len(sentences)


def test_the_docstring_is_the_message_until_somebody_knows_better() -> None:
    assert str(DiskFull()) == DiskFull.__doc__
    assert DiskFull("the disk of the blobs is full").message == "the disk of the blobs is full"


def test_an_invalid_field_is_named() -> None:
    error = InvalidField("items[3].amount", "is not a number")
    assert "items[3].amount" in error.message
    assert error.data == {"field": "items[3].amount"}


def test_what_is_unavailable_says_when_to_come_back() -> None:
    for kind in catalogue().values():
        if issubclass(kind, Unavailable):
            assert kind.status == 503
            assert kind().retry_after
    assert QueueFull(retry_after=7).retry_after == 7


def test_a_code_that_is_taken_cannot_be_given_to_another_reason() -> None:
    with pytest.raises(TypeError, match="share the code"):
        type("Intruder", (HoldfastError,), {"status": 503, "number": 3, "reason": "something_else"})
    assert catalogue()[50303] is DiskFull
