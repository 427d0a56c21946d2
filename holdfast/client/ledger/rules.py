"""What the ledger decides, without a database, a network or a clock: who may change a row, what an answer means."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from enum import Enum, auto

from holdfast.client.errors import InvalidValue

NAME = 200
REMARK = 4_000
MONEY_DIGITS = 15
MONEY_PLACES = 4
OWN = ""
"""The user of a replica that nobody has logged in to yet."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?)?\Z")


def is_mine(crt_user: str, me: str) -> bool:
    """What was written before the first login has no name yet, and is mine."""
    return crt_user in (me, OWN)


class Reaction(Enum):
    """What to do about the server's answer to a row that was sent."""

    DONE = auto()
    """It has it (or, after a deletion, has it no more)."""
    UPDATE = auto()
    """It has this row with other content: send ours as a change."""
    DROP = auto()
    """It was deleted elsewhere: let it go here too."""
    PARK = auto()
    """It will never take this: keep it, say why, go on with the rest."""
    LATER = auto()
    """Not now."""


def reaction(status: int, reason: str, op: str) -> Reaction:
    if 200 <= status < 300:
        return Reaction.DONE
    if op == "delete" and status == 404:
        return Reaction.DONE
    if op == "create" and status == 409 and reason == "exists_mine":
        return Reaction.UPDATE
    if status == 404 and reason == "deleted":
        return Reaction.DROP
    if status in (401, 408, 425, 429) or status >= 500:
        return Reaction.LATER
    return Reaction.PARK


def checked_name(field: str, text: object, longest: int = NAME) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue(field, "give it some text")
    if len(text) > longest:
        raise InvalidValue(field, f"{longest} characters at the most")
    if _CONTROL.search(text):
        raise InvalidValue(field, "no control characters")
    return text


def checked_remark(text: object) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise InvalidValue("remark", "is a text")
    if len(text) > REMARK:
        raise InvalidValue("remark", f"{REMARK} characters at the most")
    return text


def checked_money(value: object) -> Decimal:
    """Decimal, never binary floating point: 0.1 + 0.2 is no amount."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise InvalidValue("money", 'give a Decimal, an int or a text such as "12.50"')
    try:
        money = Decimal(value)
    except InvalidOperation:
        raise InvalidValue("money", "is not a number") from None
    if not money.is_finite():
        raise InvalidValue("money", "is not a number")
    _sign, digits, exponent = money.as_tuple()
    assert isinstance(exponent, int)
    whole = len(digits) + exponent
    if exponent < -MONEY_PLACES:
        raise InvalidValue("money", f"{MONEY_PLACES} decimals at the most")
    if max(whole, 0) + max(-exponent, 0) > MONEY_DIGITS:
        raise InvalidValue("money", f"{MONEY_DIGITS} digits at the most")
    return money if exponent <= 0 else money.quantize(Decimal(1))


def checked_time(text: object) -> str:
    if not isinstance(text, str) or not _DATE.match(text):
        raise InvalidValue("time", 'write it as "2026-02-18" or "2026-02-18T12:30:00Z"')
    return text


def checked_type(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise InvalidValue("type", "is a whole number")
    return value


def is_newer(timestamp: int, since: int, version: int, tombstone: int) -> bool:
    """Whether a notification says more than the cursor, the row and our own memory of its deletion."""
    return timestamp > since and timestamp > version and timestamp > tombstone
