"""What an app sees of its library. Pure data; `extra` is what other versions of the app have put there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct

from holdfast.client.ledger.model import Refusal

Data = dict[str, object]


class Kind(IntEnum):
    """In the order in which a push takes them: parents before children."""

    SCORE = 1
    PART = 2
    SETLIST = 3
    ENTRY = 4


WORD: Mapping[int, str] = {
    Kind.SCORE: "score",
    Kind.PART: "instrumentScore",
    Kind.SETLIST: "setlist",
    Kind.ENTRY: "setlistScore",
}
"""What the wire calls one; several are this with an s."""

SYNCED, NEW, CHANGED, DELETED = 0, 1, 2, 3
"""`state` of a row."""


class Score(Struct, frozen=True):
    id: str
    title: str
    composer: str | None
    bpm: int | None
    state: int
    refusal: Refusal | None = None


class Part(Struct, frozen=True):
    """An instrument's score."""

    id: str
    score_id: str
    instrument: str
    pdf: str | None
    """The MD5 of its PDF."""
    order: int | None
    annotations: str | None
    state: int
    refusal: Refusal | None = None


class Setlist(Struct, frozen=True):
    id: str
    name: str
    description: str | None
    state: int
    refusal: Refusal | None = None


class Entry(Struct, frozen=True):
    """A score in a setlist."""

    id: str
    setlist_id: str
    score_id: str
    order: int | None
    state: int
    refusal: Refusal | None = None
