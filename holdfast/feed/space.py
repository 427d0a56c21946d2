"""A space under its lock, and what one transaction does to it.

Lock order, always (PostgreSQL; SQLite has one writer): 1. the spaces, by number; 2. their members, in a later
statement; 3. the rooms' own rows; 4. in `record`, all feeds touched, by owner.

Why the members are read later: a statement that waited for a lock still sees, of every other table, the
snapshot from before it waited. Read together with the space, the members would be those of before the join
that held the lock.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from holdfast.store import Query, Statement, Transaction

OPEN = Statement(
    "INSERT INTO feed_space (space, seq, cseq, head, live, digest, swept) VALUES (:space, 0, 0, 0, 0, 0, 0)"
)
LOCK = Query(
    tuple[int, int, int, int, int, int | None],
    "SELECT seq, cseq, head, live, digest, closed_ms FROM feed_space WHERE space = :space FOR NO KEY UPDATE",
)
LOCK_MANY = Query(
    tuple[int, int, int, int, int, int, int | None],
    """
    SELECT space, seq, cseq, head, live, digest, closed_ms FROM feed_space
    WHERE space = ANY(:spaces) ORDER BY space FOR NO KEY UPDATE
    """,
)
MEMBERS = Query(int, "SELECT owner FROM feed_link WHERE space = :space AND inside = TRUE ORDER BY owner")
MEMBERS_OF_MANY = Query(
    tuple[int, int],
    "SELECT space, owner FROM feed_link WHERE space = ANY(:spaces) AND inside = TRUE ORDER BY owner",
)


class Space(msgspec.Struct, frozen=True):
    """A space as it is under the lock of this transaction."""

    key: int
    seq: int
    cseq: int
    head: int
    live: int
    digest: int
    is_open: bool
    members: tuple[int, ...]


class Change(msgspec.Struct, frozen=True):
    """An entity's new state. `was` and `now` are the hashes of its revisions; None: not there, or dead."""

    kind: int
    entity: str
    now: int | None
    was: int | None = None


class Turn(msgspec.Struct, frozen=True):
    """Everything that one transaction does to one space.

    Whoever joins sees the changes of the same turn as part of what he joined; whoever leaves does not see them.
    """

    space: Space
    changes: tuple[Change, ...] = ()
    join: tuple[int, ...] = ()
    leave: tuple[int, ...] = ()
    close: bool = False

    @property
    def joined(self) -> list[int]:
        if self.close:
            return []
        return sorted(set(self.join).difference(self.space.members, self.leave))

    @property
    def left(self) -> list[int]:
        if self.close:
            return list(self.space.members)
        return sorted(set(self.leave).intersection(self.space.members).difference(self.join))


def open_space(tx: Transaction, key: int) -> Space:
    """A new space, locked, with nobody in it yet: whoever made it joins in this transaction's `record`."""
    tx.execute(OPEN, space=key)
    return Space(key, 0, 0, 0, 0, 0, True, ())


def lock_space(tx: Transaction, key: int) -> Space | None:
    """The space under its lock, closed or not; None when there is none."""
    row = tx.row(LOCK, space=key)
    if row is None:
        return None
    members = tuple(tx.rows(MEMBERS, space=key))
    return Space(key, *row[:5], row[5] is None, members)


def lock_spaces(tx: Transaction, keys: Collection[int]) -> dict[int, Space]:
    """Several at once, in the one order that cannot deadlock; those that do not exist are left out."""
    wanted = sorted(set(keys))
    rows = tx.rows(LOCK_MANY, spaces=wanted)
    members: dict[int, list[int]] = {row[0]: [] for row in rows}
    for key, owner in tx.rows(MEMBERS_OF_MANY, spaces=wanted):
        members[key].append(owner)
    return {row[0]: Space(*row[:6], row[6] is None, tuple(members[row[0]])) for row in rows}
