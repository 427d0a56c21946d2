"""Names, passwords, and what a refresh token is good for: without a store."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.accounts.model import RefreshState
from holdfast.accounts.rules import (
    Exchange,
    checked_name,
    checked_password,
    exchange,
    key_of_existing,
    name_key,
    typed_password,
    why_not_a_name,
)
from holdfast.errors import InvalidField


@pytest.mark.parametrize(
    "name", ["ann", "Zoë", "a" * 64, "李小龙", "ann@example.org", "r2d2", "五五五", "e\u0301" * 64, "x y"]
)
def test_names_that_people_have_are_good(name: str) -> None:
    assert checked_name(name) == normalize("NFC", name)


@pytest.mark.parametrize(
    "name",
    [
        "", "ab", "a" * 65, "12345", "١٢٣٤", "a\x00bc", "a\nbc", "a\u200bbc", "a\u202ebc", "abc\u2028",
        " abc", "abc ", "abc\u00a0", "a\ud800bc", "a\U000e0001bc", "abc\u0378", "e\u0301" * 65, "a" * 10_000_000,
    ],
)  # fmt: skip
def test_names_that_mislead_or_cannot_be_kept_are_refused(name: str) -> None:
    with pytest.raises(InvalidField, match="username"):
        checked_name(name)
    assert key_of_existing(name) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann", "aNN"),
        ("Zoë", "ZOE\u0308"),
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("Å ngström", "Å ngström"),
    ],
)
def test_spellings_that_people_take_for_one_name_are_one(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@given(st.text(max_size=70))
def test_a_name_that_was_accepted_is_found_again_in_every_spelling(name: str) -> None:
    if why_not_a_name(normalize("NFC", name)) is not None:
        return
    kept = checked_name(name)
    assert checked_name(kept) == kept
    assert "\x00" not in kept
    for spelling in (name, kept, normalize("NFD", kept)):
        assert key_of_existing(spelling) == name_key(kept)
    assert name_key(name_key(kept)) == name_key(kept)


def test_a_password_is_the_same_from_every_keyboard() -> None:
    assert checked_password("pa\u0308sswort", 8) == checked_password("p\u00e4sswort", 8)
    assert typed_password("pa\u0308sswort") == checked_password("p\u00e4sswort", 8)
    assert typed_password("x" * 1025) is None


NOW, GRACE = 1_000_000, 60_000


def state(
    *,
    expires: int = NOW + 1,
    exchanged: int | None = None,
    ended: int | None = None,
    sv: int = 1,
    disabled: bool = False,
) -> RefreshState:
    return RefreshState(1, expires, exchanged, 1, ended, 7, "ann", sv, disabled)


@pytest.mark.parametrize(
    ("token", "leads_to"),
    [
        (state(), Exchange.NEXT),
        (state(exchanged=NOW - GRACE + 1), Exchange.AGAIN),
        (state(exchanged=NOW - GRACE), Exchange.REUSED),
        (state(expires=NOW), Exchange.EXPIRED),
        (state(expires=NOW, exchanged=NOW - GRACE), Exchange.EXPIRED),
        (state(ended=NOW - 1), Exchange.ENDED),
        (state(sv=2), Exchange.ENDED),
        (state(disabled=True), Exchange.ENDED),
        (state(ended=NOW - 1, exchanged=0, expires=0), Exchange.ENDED),
    ],
)  # fmt: skip
def test_what_presenting_a_refresh_token_leads_to(token: RefreshState, leads_to: Exchange) -> None:
    assert exchange(token, NOW, GRACE) is leads_to
