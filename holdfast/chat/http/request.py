"""What the handlers share: parameters that are ids or cursors, and so strings; bounded lists."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from holdfast.errors import InvalidField
from holdfast.http.visit import caller
from holdfast.ids import MAX_ID

TOKEN = [{"token": list[str]()}]
MOST_IDS = 100
MOST_ROWS = 200

Limit = Annotated[int, QueryParameter(ge=1, le=MOST_ROWS, description=f"rows of a page, at most {MOST_ROWS}")]
PeerUserId = Annotated[str, QueryParameter(name="peerUserId", description="the other one")]
GroupId = Annotated[str, QueryParameter(name="groupId")]
LastSeq = Annotated[
    str | None, QueryParameter(name="lastSeq", description="messages below it; absent: from the newest")
]
SinceSeq = Annotated[str, QueryParameter(name="sinceSeq", description="messages above it")]
Ids = Annotated[str, QueryParameter(name="ids", description=f"ids, separated by commas, at most {MOST_IDS}")]


def me() -> int:
    return caller().user_id


def number(field: str, text: str, *, least: int = 0) -> int:
    """A 64-bit number in a string."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= MAX_ID):
        raise InvalidField(field, "must be a number in a string")
    return int(text)


def an_id(field: str, text: str) -> int:
    return number(field, text, least=1)


def ids(field: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not 1 <= len(parts) <= MOST_IDS:
        raise InvalidField(field, f"must be 1 to {MOST_IDS} ids, separated by commas")
    return sorted({an_id(field, part) for part in parts})
