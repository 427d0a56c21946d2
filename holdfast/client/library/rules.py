"""What the library decides without a database or a network: which key a row has, what an answer to a push means."""

from __future__ import annotations

from enum import Enum, auto

from holdfast.client.errors import InvalidValue
from holdfast.client.ledger.rules import checked_name
from holdfast.client.library.model import Data, Kind

SEPARATOR = "\x1f"  # in no name: control characters are refused


def key_of(kind: int, data: Data, score_id: str | None, setlist_id: str | None) -> str:
    """What no other living row may have. A missing composer is an empty one."""
    match kind:
        case Kind.SCORE:
            parts = [data.get("title"), data.get("composer") or ""]
        case Kind.PART:
            parts = [score_id, data.get("instrumentName")]
        case Kind.SETLIST:
            parts = [data.get("name")]
        case _:
            parts = [setlist_id, score_id]
    return SEPARATOR.join(map(str, (kind, *parts)))


def checked_title(field: str, text: object) -> str:
    return checked_name(field, text)


def checked_optional(field: str, text: object, longest: int) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > longest:
        raise InvalidValue(field, f"is a text of {longest} characters at the most")
    return text


def checked_number(field: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**63:
        raise InvalidValue(field, "is a whole number")
    return value


class PushReaction(Enum):
    PULL = auto()
    """Another device was first: pull, merge, push again."""
    START_OVER = auto()
    """The server has another history: pull everything, then push again."""
    PARK = auto()
    """The named change will never be taken: park it, and send the rest."""
    UPLOAD = auto()
    """The named change refers to a file that the server does not have (any more)."""
    AGAIN = auto()
    """Under another key."""
    HALVE = auto()
    """Something in it is refused, and nothing says what."""


def push_reaction(status: int, reason: str, *, names_one: bool, reset: bool) -> PushReaction:
    if status == 412:
        return PushReaction.START_OVER if reset else PushReaction.PULL
    if reason == "idempotency_key_reused":
        return PushReaction.AGAIN
    if reason == "file_missing" and names_one:
        return PushReaction.UPLOAD
    return PushReaction.PARK if names_one else PushReaction.HALVE
