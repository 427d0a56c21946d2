"""The books that a transaction has under lock: opened one by one, or all at once for a batch."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast import feed
from holdfast.errors import NotFound
from holdfast.feed import Space
from holdfast.ledger import queries as sql
from holdfast.ledger.errors import Deleted
from holdfast.ledger.model import By
from holdfast.ledger.rules import require_member
from holdfast.store import Transaction


class OutOfDate(Exception):
    """A batch met a book that was not there when it locked its books: it has to begin anew."""


class Desk:
    """`locked`: everything that a batch will touch, locked in the one order that cannot deadlock."""

    def __init__(self, tx: Transaction, locked: Mapping[int, Space] | None = None) -> None:
        self._tx = tx
        self._spaces = dict(locked or {})
        self._is_complete = locked is not None
        self._members: dict[int, tuple[int, ...]] = {}
        self._closed: set[int] = set()

    def __getitem__(self, key: int) -> Space:
        """A space that is on the desk."""
        return self._spaces[key]

    def _lock(self, key: int | None) -> Space:
        if key is None:
            raise NotFound
        space = self._spaces.get(key)
        if space is None:
            if self._is_complete:
                raise OutOfDate
            space = feed.lock_space(self._tx, key)
            if space is None:  # long deleted: its log was swept
                raise NotFound
            self._spaces[key] = space
        return space

    def book(self, by: By, key: int | None) -> Space:
        """The book under its lock, for one of its members; nobody else is told that it is there."""
        space = self._lock(key)
        if not self.is_open(space):
            if space.is_open or feed.was_inside_at_the_end(self._tx, by.user_id, space.key):
                raise Deleted
            raise NotFound
        require_member(by.user_id, self.members(space))
        return space

    def any_book(self, key: int | None) -> Space:
        """The book under its lock, open or not, whoever asks."""
        return self._lock(key)

    def is_open(self, space: Space) -> bool:
        return space.is_open and space.key not in self._closed

    def members(self, space: Space) -> tuple[int, ...]:
        """Also of a book that this transaction made."""
        return self._members.get(space.key, space.members)

    def others(self, by: By, space: Space) -> tuple[int, ...]:
        """All members but the author."""
        return tuple([member for member in self.members(space) if member != by.user_id])

    def id_of(self, space: Space) -> str:
        """The id of the book."""
        return self._tx.one(sql.ID_OF_BOOK, space=space.key)

    # -- what this transaction did

    def opened(self, space: Space, *members: int) -> None:
        self._spaces[space.key] = space
        self._members[space.key] = members

    def closed(self, space: Space) -> None:
        self._closed.add(space.key)
