"""What `notes` and `notes_server` say to each other. Knows nothing of either."""

from __future__ import annotations

import hashlib

import msgspec

SHELVES = 16
PAGE = 2_000


class Note(msgspec.Struct, frozen=True):
    id: int
    text: str


class Kept(msgspec.Struct, frozen=True):
    """The answer: which place on its shelf the note has got."""

    id: int
    serial: int


class Row(msgspec.Struct, frozen=True):
    """A note as it lies there, whole or not."""

    id: int | None
    serial: int | None
    text: str | None
    seal: str | None


class Page(msgspec.Struct, frozen=True):
    last: int
    rows: list[Row]


def seal_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
