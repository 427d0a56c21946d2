"""What the ledger's doors read from the request under way, and say about themselves."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from holdfast.errors import InvalidField
from holdfast.http.idempotency import Key, key_of
from holdfast.http.visit import caller, visit
from holdfast.ids import MAX_ID
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.model import By, as_json

LONGEST_DEVICE = 128
PAGE = 100
TOKEN: list[dict[str, list[str]]] = [{"token": []}]

F = TypeVar("F", bound=msgspec.Struct)


def by(ledger: Ledger) -> By:
    """Who asks, when, and on which of his devices; a 401 for whoever sent no good token."""
    origin = visit().header(b"x-device-id") if ledger.settings.notify_own_devices else None
    if origin is not None and not (len(origin) <= LONGEST_DEVICE and origin.isprintable()):
        raise InvalidField("X-Device-Id", f"must have at most {LONGEST_DEVICE} printable characters")
    return By(caller().user_id, ledger.clock.now_ms(), origin)


def key_for(who: By, id_: str | None, body: F) -> Key | None:
    """The `Idempotency-Key` of a request that makes something without naming it."""
    return None if id_ is not None else key_of(who.user_id, as_json(body))


def page_limit(ledger: Ledger, limit: int | None) -> int:
    if limit is None:
        return min(PAGE, ledger.limits.page)
    if not 1 <= limit <= ledger.limits.page:
        raise InvalidField("limit", f"must be 1 to {ledger.limits.page}")
    return limit


def user_id(text: str) -> int | None:
    """The user that a path names, or None when nobody can have this id."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    number = int(text)
    return number if 0 < number <= MAX_ID else None
