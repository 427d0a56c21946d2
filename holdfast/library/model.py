"""What a library is made of. Pure: knows neither databases nor HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Literal

import msgspec

Data = dict[str, object]
Operation = Literal["create", "update", "delete"]


class Kind(IntEnum):
    """In the order in which a push takes them, which is also parents before children."""

    SCORE = 1
    INSTRUMENT_SCORE = 2
    SETLIST = 3
    SETLIST_SCORE = 4


WORD: Mapping[Kind, str] = {
    Kind.SCORE: "score",
    Kind.INSTRUMENT_SCORE: "instrumentScore",
    Kind.SETLIST: "setlist",
    Kind.SETLIST_SCORE: "setlistScore",
}
"""What the wire calls one; several are this with an s."""

KIND: Mapping[str, Kind] = {word: kind for kind, word in WORD.items()}


class Row(msgspec.Struct, frozen=True):
    """One entity as it is kept. Fields in the order of the columns."""

    id: int
    kind: int
    version: int
    key: str
    score_id: int | None
    setlist_id: int | None
    pdf_md5: str | None
    data: str
    created_ms: int
    updated_ms: int
    deleted_ms: int | None

    @property
    def is_live(self) -> bool:
        return self.deleted_ms is None


class Alias(msgspec.Struct, frozen=True):
    """A name that a client gave to a row. Fields in the order of the columns."""

    entity_id: str
    kind: int
    id: int


class Change(msgspec.Struct, frozen=True):
    """One change of a push, its fields checked, its parents still as the client named them."""

    kind: Kind
    entity_id: str
    server_id: int | None
    operation: Operation
    data: Data


class Deletion(msgspec.Struct, frozen=True):
    """`entity_id`: it came as a change, and is answered as one."""

    kind: Kind
    server_id: int | None
    entity_id: str | None = None

    def __str__(self) -> str:
        return f"{WORD[self.kind]}:{self.server_id or self.entity_id}"


class Push(msgspec.Struct, frozen=True):
    """A whole push, read and checked, but for what only the library's rows can tell."""

    client_version: int
    epoch: str | None
    changes: Mapping[Kind, tuple[Change, ...]]
    deletions: tuple[Deletion, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.changes.values())) + len(self.deletions)

    @property
    def creates(self) -> int:
        """How many new rows it may need."""
        return sum(change.operation == "create" for changes in self.changes.values() for change in changes)


class Pushed(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to a push that was taken."""

    new_library_version: int
    accepted: list[str]
    server_id_mapping: dict[str, int]
    success: bool = True
    conflict: bool = False
