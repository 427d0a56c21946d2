"""What an operation did, before it has its place in the feed; and what members hear of it. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from holdfast.feed import Change
from holdfast.ledger.model import Entity, Kind, Shown

NewsType = Literal[
    "ADD_BOOK",
    "UPDATE_BOOK",
    "DELETE_BOOK",
    "ADD_BILL",
    "UPDATE_BILL",
    "DELETE_BILL",
    "IMAGE_UPLOADED",
    "IMAGE_DELETED",
]

S = TypeVar("S", bound=Shown, covariant=True)


class Say(Struct, frozen=True):
    """Who is to hear what, once it is committed."""

    type: NewsType
    to: tuple[int, ...]
    about: Entity | str
    """The entity, or the id of what is gone."""
    leaving: bool = False
    """They are told of it as the end of their membership: their feeds hold it where they left."""
    own: bool = True
    """The author's other devices may hear it too, when the settings say so."""
    again: bool = False
    """Nothing has changed; it is passed on because a message of the uplink says it."""


class Deed(Struct, Generic[S], frozen=True, kw_only=True):
    """One operation on one book. Without changes it is a replay: all is as it was."""

    space: int
    book_id: str
    kind: int
    result: S
    changes: tuple[Change, ...] = ()
    root: int = 0
    """Which of the changes is the result's own."""
    join: tuple[int, ...] = ()
    leave: tuple[int, ...] = ()
    close: bool = False
    files: Mapping[str, int] = {}
    """SHA-256 → by how many more rows it is referred to."""
    members: tuple[int, ...] | None = None
    """Who is in the book from now on, if that is not as it was."""
    holder: str | None = None
    """Whose claim on the files ends."""
    says: tuple[Say, ...] = ()


class News(Struct, frozen=True):
    """Event: committed, and to be told to members. Best effort: whoever misses it pulls."""

    type: NewsType
    kind: Kind
    book_id: str
    about: Entity | str
    to: tuple[int, ...]
    own: bool
    version: int
    author: int
    origin: str | None
    message_id: str | None = None
    """Of the uplink message that it came by."""
    again: bool = False


class Membership(Struct, frozen=True):
    """Event: who is in a book from now on."""

    book_id: str
    members: tuple[int, ...]
