"""The write path: gives positions to what a transaction did to its spaces.

Called once per transaction and last, because from here to the commit every feed it touches is locked.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.feed import digest, links, log
from holdfast.feed.layout import Layout, Place, Shape, lay_out
from holdfast.feed.space import Change, Turn
from holdfast.store import Query, Statement, Transaction

# Locks the feeds in the order of their owners, then moves every head to the same position. The heads are
# read as they are under the lock, not as in the statement's snapshot.
TAKE = Query(
    int,
    """
    --postgresql: WITH locked AS (
    --postgresql:     SELECT last FROM feed_owner WHERE owner = ANY(:owners) ORDER BY owner FOR NO KEY UPDATE
    --postgresql: ), start AS (SELECT GREATEST(:floor, max(last) + 1) AS first FROM locked)
    UPDATE feed_owner SET last = start.first + :span - 1
    --postgresql: FROM start
    --sqlite: FROM (SELECT max(:floor, max(last) + 1) AS first FROM feed_owner WHERE owner = ANY(:owners)) AS start
    WHERE owner = ANY(:owners)
    RETURNING last - :span + 1
    """,
)
MOVE = Statement("UPDATE feed_owner SET last = :last WHERE owner = ANY(:owners)")
SAVE = Statement(
    """
    UPDATE feed_space SET seq = :seq, cseq = :cseq, head = :head, live = :live, digest = :digest,
        closed_ms = :closed_ms
    WHERE space = :space
    """
)


class Recorded(msgspec.Struct, frozen=True):
    """What became of a turn: the version of each of its changes, in their order."""

    versions: tuple[int, ...]
    left: int | None
    """Where whoever left finds the deletion of the space's first entity; the others follow it."""


def record(tx: Transaction, now_ms: int, turns: Sequence[Turn]) -> list[Recorded]:
    """Writes the turns down, one per locked space, and answers one `Recorded` for each.

    An entity that changed twice in a turn appears once, at its last change.
    """
    for turn in turns:
        if not turn.space.is_open:
            raise ValueError(f"the space {turn.space.key} is closed")
    joined = [turn.joined for turn in turns]
    left = [turn.left for turn in turns]
    latest = [_latest(turn.changes) for turn in turns]
    layout = lay_out(
        [
            Shape(turn.space.seq, turn.space.cseq, len(changes), bool(came), bool(went))
            for turn, changes, came, went in zip(turns, latest, joined, left, strict=True)
        ]
    )
    first = _take(tx, now_ms, turns, joined, left, layout)
    return [
        _write(tx, now_ms, first, turn, changes, came, went, place)
        for turn, changes, came, went, place in zip(turns, latest, joined, left, layout.places, strict=True)
    ]


def _latest(changes: tuple[Change, ...]) -> list[Change]:
    if len(changes) < 2:
        return list(changes)
    latest: dict[tuple[int, str], Change] = {}
    for change in changes:
        latest.pop((change.kind, change.entity), None)
        latest[change.kind, change.entity] = change
    return list(latest.values())


def _take(
    tx: Transaction,
    now_ms: int,
    turns: Sequence[Turn],
    joined: Sequence[list[int]],
    left: Sequence[list[int]],
    layout: Layout,
) -> int:
    """Locks all feeds touched, moves their heads, and answers the first position taken."""
    owners: set[int] = set()
    for turn, came, went in zip(turns, joined, left, strict=True):
        owners.update(came, turn.space.members if turn.changes else went)
    floor = max([now_ms, *[turn.space.head + 1 for turn in turns]])
    if not owners:
        return floor
    newcomers = sorted({owner for came in joined for owner in came})
    if newcomers:
        links.ensure_owners(tx, newcomers)
    first = tx.one(TAKE, owners=sorted(owners), floor=floor, span=layout.staying)
    leavers = sorted({owner for went in left for owner in went})
    if leavers:
        tx.execute(MOVE, owners=leavers, last=first + layout.leaving - 1)
    return first


def _write(
    tx: Transaction,
    now_ms: int,
    first: int,
    turn: Turn,
    latest: list[Change],
    joined: list[int],
    left: list[int],
    place: Place,
) -> Recorded:
    space = turn.space
    pos = first + place.pos
    new = log.append(tx, space, latest, pos, now_ms) if latest else 0
    seq, cseq = space.seq + len(latest), space.cseq + new
    if joined:
        links.join(tx, space.key, joined, base=first + place.join_base, cut=seq)
    if left:
        links.leave(tx, space.key, left, base=first + place.leave_base, cut=cseq, now_ms=now_ms)
    if latest or turn.close:
        before = [change.was for change in turn.changes if change.was is not None]
        after = [change.now for change in turn.changes if change.now is not None]
        tx.execute(
            SAVE,
            space=space.key,
            seq=seq,
            cseq=cseq,
            head=pos + len(latest) - 1 if latest else space.head,
            live=space.live + len(after) - len(before),
            digest=digest.stored(space.digest + sum(after) - sum(before)),
            closed_ms=now_ms if turn.close else None,
        )
    return Recorded(_versions(turn.changes, latest, pos), first + place.leave_base + 1 if left else None)


def _versions(changes: tuple[Change, ...], latest: list[Change], pos: int) -> tuple[int, ...]:
    if len(changes) == len(latest):
        return tuple(range(pos, pos + len(latest)))
    at = {(change.kind, change.entity): pos + n for n, change in enumerate(latest)}
    return tuple([at[change.kind, change.entity] for change in changes])
