"""The decisions of the ledger: what a field may hold, when two contents are the same, who may do what. Pure."""

from __future__ import annotations

import re
from collections.abc import Container
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from unicodedata import category

from holdfast.errors import Forbidden, InvalidField, NotFound
from holdfast.ids import is_xid
from holdfast.ledger.model import BillFields, BookFields, StoredBill, StoredBook
from holdfast.settings import Limits

MONEY_DIGITS, MONEY_DECIMALS = 15, 4

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))\Z", re.ASCII
)
_START = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_ALLOWED_IN_LINES = "\n\r\t"


# -- fields


def checked_id(field: str, text: str) -> str:
    if not is_xid(text):
        raise InvalidField(field, "must be an Xid: 20 characters of 0-9 and a-v")
    return text


def checked_text(field: str, text: str, most: int, *, least: int = 0, lines: bool = False) -> str:
    """`text`, if it has at most `most` characters, none of them a control character (but ends of lines in `lines`)."""
    if not least <= len(text) <= most:
        raise InvalidField(field, f"must have {least} to {most} characters")
    if not text.isprintable():  # quick, and true of nearly everything
        for character in text:
            if category(character) in ("Cc", "Cs") and not (lines and character in _ALLOWED_IN_LINES):
                raise InvalidField(field, "must not have control characters")
    return text


def checked_money(value: Decimal) -> str:
    """The digits as they are kept."""
    if not value.is_finite():
        raise InvalidField("money", "must be a number")
    _sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "finite"
    if -exponent > MONEY_DECIMALS:
        raise InvalidField("money", f"must have at most {MONEY_DECIMALS} decimals")
    if value and len(digits) + max(exponent, 0) > MONEY_DIGITS:
        raise InvalidField("money", f"must have at most {MONEY_DIGITS} digits")
    if not value:
        return "0" if exponent >= 0 else f"{abs(value):f}"
    return f"{value:f}"


def moment_ms(field: str, text: str, *, end_of_day: bool = False) -> int:
    """A date (its first moment in UTC, or its last), or a moment in RFC 3339, as milliseconds since 1970."""
    try:
        if _DATE.match(text):
            ms = (date.fromisoformat(text) - _START.date()).days * _DAY_MS
            return ms + _DAY_MS - 1 if end_of_day else ms
        found = _MOMENT.match(text)
        if found is None:
            raise ValueError
        day, clock, fraction, sign, hours, minutes = found.groups()
        moment = datetime.fromisoformat(f"{day}T{clock}+00:00")
        ms = (moment - _START) // timedelta(milliseconds=1)
        if fraction:
            ms += int(fraction[:3].ljust(3, "0"))
        if sign:
            ms += _offset_ms(int(hours), int(minutes)) * (-1 if sign == "+" else 1)
        return ms
    except ValueError:
        raise InvalidField(field, 'must be a date ("2026-02-18") or a moment in RFC 3339') from None


def _offset_ms(hours: int, minutes: int) -> int:
    if hours > 23 or minutes > 59:
        raise ValueError
    return (hours * 60 + minutes) * 60_000


def check_book(fields: BookFields, limits: Limits) -> None:
    checked_text("name", fields.name, limits.name, least=1)
    checked_text("type", fields.type, limits.name)
    if fields.banner is not None:
        checked_text("banner", fields.banner, limits.remark)


def check_bill(fields: BillFields, limits: Limits) -> None:
    checked_money(fields.money)
    checked_text("category", fields.category, limits.name)
    moment_ms("time", fields.time)
    if fields.remark is not None:
        checked_text("remark", fields.remark, limits.remark, lines=True)


# -- the same or not


def same_book(stored: StoredBook, asked: BookFields) -> bool:
    return (stored.name, stored.type, stored.banner, stored.is_initial) == (
        asked.name,
        asked.type,
        asked.banner,
        bool(asked.is_initial),
    )


def same_bill(stored: StoredBill, asked: BillFields) -> bool:
    return (stored.type, stored.category, stored.time, stored.remark) == (
        asked.type,
        asked.category,
        asked.time,
        asked.remark,
    ) and Decimal(stored.money) == asked.money


def next_upd_ms(now_ms: int, upd_ms: int) -> int:
    """A revision's time names it: never the same twice, whatever the clock does."""
    return max(now_ms, upd_ms + 1)


# -- who may do what


def require_member(user_id: int, members: Container[int]) -> None:
    """Whoever is not a member is not told that there is a book."""
    if user_id not in members:
        raise NotFound


def require_creator(user_id: int, creator: int) -> None:
    if user_id != creator:
        raise Forbidden
