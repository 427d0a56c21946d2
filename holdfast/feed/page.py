"""The read path: one page of one owner's feed, out of one snapshot.

It begins with one row, the head: a client that is up to date costs nothing more.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from holdfast.feed.epoch import Epoch, must_start_over, next_epoch
from holdfast.feed.merge import merged
from holdfast.feed.ranges import Entry, changed_ranges
from holdfast.store import Query, Snapshot

HEAD = Query(
    tuple[int | None, str | None, str | None],
    """
    SELECT (SELECT last FROM feed_owner WHERE owner = :owner),
        (SELECT value FROM meta WHERE name = 'epoch'), (SELECT value FROM meta WHERE name = 'feed_swept_ms')
    """,
)
# CROSS JOIN: SQLite then begins with the entities, and not with whole logs of the owner's spaces.
PLACES = Query(
    tuple[int, int, str, int, int, int, int, int],
    """
    SELECT g.space, g.kind, g.entity, g.seq, g.pos, g.fresh, l.base, l.cut
    FROM feed_log g CROSS JOIN feed_link l
    WHERE g.entity = ANY(:entities) AND g.died_ms IS NULL
        AND l.owner = :owner AND l.space = g.space AND l.inside = TRUE
    """,
)


class Ask(msgspec.Struct, frozen=True):
    """What a client wants: what is new above `since`. Of the seed's clients `epoch` is None."""

    owner: int
    since: int
    limit: int
    epoch: str | None = None


class Page(msgspec.Struct, frozen=True):
    entries: list[Entry]
    head: int
    next_since: int
    has_more: bool
    epoch: str
    reset: bool


class Parent(msgspec.Struct, frozen=True):
    """The entity that another one cannot be without."""

    space: int
    kind: int
    entity: str


def page(view: Snapshot, ask: Ask, now_ms: int, keep_ms: int) -> Page:
    """`keep_ms`: how long tombstones are kept; a client whose last complete pull is older starts over."""
    head, store, swept_ms = _head(view, ask.owner)
    given = None if ask.epoch is None else Epoch.decode(ask.epoch)
    reset = must_start_over(given, ask.since, head, store, max(now_ms - keep_ms, swept_ms))
    since = 0 if reset else ask.since
    entries: list[Entry] = []
    if since != head:
        ranges = changed_ranges(view, ask.owner, since)
        if ranges:
            entries = merged(ranges, ask.limit + 1)
    has_more = len(entries) > ask.limit
    if has_more:
        entries.pop()
    epoch = next_epoch(given, store, now_ms, from_zero=since == 0, complete=not has_more)
    return Page(entries, head, entries[-1].version if has_more else head, has_more, epoch.encode(), reset)


def page_if_current(view: Snapshot, ask: Ask, now_ms: int, keep_ms: int) -> Page | None:
    """The page of a client that has seen everything, at the cost of one statement; None: there is more to say."""
    head, store, swept_ms = _head(view, ask.owner)
    given = None if ask.epoch is None else Epoch.decode(ask.epoch)
    if ask.since != head or must_start_over(given, head, head, store, max(now_ms - keep_ms, swept_ms)):
        return None
    epoch = next_epoch(given, store, now_ms, from_zero=head == 0, complete=True)
    return Page([], head, head, False, epoch.encode(), False)


def parents_ahead(view: Snapshot, owner: int, end: int, parents: Collection[Parent]) -> list[Entry]:
    """Those of `parents` that live and whose own place in the feed lies beyond `end`, in order.

    A page that ends at `end` carries them along, so that no child comes before its parent. Those that lie before
    were on this page or on an earlier one.
    """
    if not parents:
        return []
    wanted = {(parent.space, parent.kind, parent.entity) for parent in parents}
    rows = view.rows(PLACES, owner=owner, entities=sorted({parent.entity for parent in parents}))
    found = [
        Entry(base + seq, space, kind, entity, True, True)
        if seq <= cut
        else Entry(pos, space, kind, entity, True, bool(fresh))
        for space, kind, entity, seq, pos, fresh, base, cut in rows
        if (space, kind, entity) in wanted
    ]
    return sorted([entry for entry in found if entry.version > end], key=_by_version)


def _by_version(entry: Entry) -> int:
    return entry.version


def _head(view: Snapshot, owner: int) -> tuple[int, str, int]:
    last, store, swept_ms = view.one(HEAD, owner=owner)
    if store is None:
        raise LookupError("the store has no epoch: `ensure_epoch` makes it at start")
    return last or 0, store, int(swept_ms or 0)
