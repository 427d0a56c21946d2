"""The stretches of logs that make up what is new in one owner's feed, read no further than asked.

For a member the order of `seq` is the order of his feed: what was there when he joined lies at `base + seq`, all
of it below whatever came later. So an inside link is one range, entered by `seq` or by `pos`; a left one is a
range of `cseq`.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.store import Query, Snapshot

# One row per space that changed for this owner; `first` is where its next entry lies when it is entered by pos.
CHANGED = Query(
    tuple[int, int, int, int, int | None],
    """
    SELECT l.space, l.inside, l.base, l.cut,
        CASE WHEN l.base + l.cut > :since THEN NULL
        ELSE (SELECT min(g.pos) FROM feed_log g WHERE g.space = l.space AND g.pos > :since) END
    FROM feed_link l JOIN feed_space s ON s.space = l.space
    WHERE l.owner = :owner AND (l.base + l.cut > :since OR (l.inside = TRUE AND s.head > :since))
    """,
)
FROM_POS = Query(
    tuple[int, int, int, str, int, int | None],
    """
    SELECT seq, pos, kind, entity, fresh, died_ms FROM feed_log
    WHERE space = :space AND seq >= (SELECT seq FROM feed_log WHERE space = :space AND pos = :pos)
    ORDER BY seq LIMIT :limit
    """,
)
AFTER_SEQ = Query(
    tuple[int, int, int, str, int, int | None],
    """
    SELECT seq, pos, kind, entity, fresh, died_ms FROM feed_log
    WHERE space = :space AND seq > :seq ORDER BY seq LIMIT :limit
    """,
)
AFTER_CSEQ = Query(
    tuple[int, int, str],
    """
    SELECT cseq, kind, entity FROM feed_log
    WHERE space = :space AND cseq > :cseq AND cseq <= :cut ORDER BY cseq LIMIT :limit
    """,
)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An entity at its place in one owner's feed. Not live: to this owner it is gone."""

    version: int
    space: int
    kind: int
    entity: str
    live: bool
    first: bool
    """The first he sees of it since he joined, or since it came to life."""


class Link(msgspec.Struct, frozen=True):
    space: int
    base: int
    cut: int


class InsideRange:
    """What a member has not seen of a space."""

    def __init__(self, view: Snapshot, link: Link, since: int, first: int | None) -> None:
        self._view = view
        self._link = link
        self._first = first
        self._seq = max(since - link.base, 0)
        self.bound = first if first is not None else max(since, link.base) + 1
        """No entry that is still to come lies below this."""
        self.ended = False

    def read(self, limit: int) -> list[Entry]:
        space, base, cut = self._link.space, self._link.base, self._link.cut
        if self._first is not None:
            rows = self._view.rows(FROM_POS, space=space, pos=self._first, limit=limit)
            self._first = None
        else:
            rows = self._view.rows(AFTER_SEQ, space=space, seq=self._seq, limit=limit)
        self.ended = len(rows) < limit
        if rows:
            self._seq = rows[-1][0]
        return [
            Entry(pos, space, kind, entity, died is None, bool(fresh))
            if seq > cut
            else Entry(base + seq, space, kind, entity, died is None, True)
            for seq, pos, kind, entity, fresh, died in rows
        ]


class LeftRange:
    """What has become invisible to someone who left, as deletions."""

    def __init__(self, view: Snapshot, link: Link, since: int) -> None:
        self._view = view
        self._link = link
        self._cseq = max(since - link.base, 0)
        self.bound = max(since, link.base) + 1
        self.ended = False

    def read(self, limit: int) -> list[Entry]:
        space, base, cut = self._link.space, self._link.base, self._link.cut
        rows = self._view.rows(AFTER_CSEQ, space=space, cseq=self._cseq, cut=cut, limit=limit)
        self.ended = len(rows) < limit
        if rows:
            self._cseq = rows[-1][0]
        return [Entry(base + cseq, space, kind, entity, False, False) for cseq, kind, entity in rows]


Range: TypeAlias = InsideRange | LeftRange


def changed_ranges(view: Snapshot, owner: int, since: int) -> list[Range]:
    ranges: list[Range] = []
    for space, inside, base, cut, first in view.rows(CHANGED, owner=owner, since=since):
        link = Link(space, base, cut)
        if not inside:
            ranges.append(LeftRange(view, link, since))
        elif first is not None or base + cut > since:
            ranges.append(InsideRange(view, link, since, first))
    return ranges
