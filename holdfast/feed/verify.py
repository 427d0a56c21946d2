"""What `holdfast check` proves of the feeds: a generator of sentences, one per problem.

| what | why |
|---|---|
| within a space, positions rise with `seq`, and neither passes the space's own | a page is read in the order of `seq` |
| every entity number from 1 to `cseq` is a row or was swept | nothing was lost |
| live rows are exactly the room's live entities, and the sums are theirs | clients trust the checksum |
| a link's range fits its log, and the owner's head lies at or above all that he sees | an empty pull looks at the head alone |
| an owner's ranges do not overlap, and no two entries share a position | `since` stands for one place |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from holdfast.feed import digest
from holdfast.store import Query, Snapshot

Hashes = Callable[[Snapshot, int], Mapping[tuple[int, str], int]]
"""What the room that owns a space holds in it: (kind, id) → hash, of the living."""

SPACES = Query(
    tuple[int, int, int, int, int, int, int, int | None],
    "SELECT space, seq, cseq, head, live, digest, swept, closed_ms FROM feed_space ORDER BY space",
)
LOG = Query(
    tuple[int, int, int, int, str, int | None],
    "SELECT seq, pos, cseq, kind, entity, died_ms FROM feed_log WHERE space = :space ORDER BY seq",
)
LINKS = Query(
    tuple[int, int, int, int, int, int | None, int | None, int | None, int | None, int | None],
    """
    SELECT l.owner, l.space, l.inside, l.base, l.cut, l.left_ms, o.last, s.seq, s.cseq, s.head
    FROM feed_link l LEFT JOIN feed_owner o ON o.owner = l.owner LEFT JOIN feed_space s ON s.space = l.space
    ORDER BY l.owner, l.base
    """,
)
ORPHANS = Query(
    tuple[int, int],
    """
    SELECT space, count(*) FROM feed_log g
    WHERE NOT EXISTS (SELECT 1 FROM feed_space s WHERE s.space = g.space) GROUP BY space
    """,
)
TWICE = Query(
    tuple[int, int, int, int],
    """
    SELECT la.owner, a.pos, a.space, b.space
    FROM feed_log a JOIN feed_log b ON b.pos = a.pos AND b.space > a.space
    JOIN feed_link la ON la.space = a.space AND la.inside = TRUE AND a.seq > la.cut
    JOIN feed_link lb ON lb.space = b.space AND lb.owner = la.owner AND lb.inside = TRUE AND b.seq > lb.cut
    """,
)
INSIDE_A_RANGE = Query(
    tuple[int, int, int, int],
    """
    SELECT l.owner, g.pos, g.space, r.space
    FROM feed_link l
    JOIN feed_link r ON r.owner = l.owner AND r.space <> l.space AND r.cut > 0
    JOIN feed_log g ON g.space = l.space AND g.pos > r.base AND g.pos <= r.base + r.cut AND g.seq > l.cut
    WHERE l.inside = TRUE
    """,
)


def problems(view: Snapshot, hashes: Hashes) -> Iterator[str]:
    for row in view.rows(SPACES):
        yield from _space(view, row, hashes)
    for space, rows in view.rows(ORPHANS):
        yield f"feed: {rows} log rows of the space {space}, which is not there"
    yield from _links(view)
    for owner, pos, one, other in view.rows(TWICE):
        yield f"feed of {owner}: the position {pos} is taken by the spaces {one} and {other}"
    for owner, pos, one, other in view.rows(INSIDE_A_RANGE):
        yield f"feed of {owner}: the position {pos} of the space {one} lies in the range of the space {other}"


def _space(
    view: Snapshot, row: tuple[int, int, int, int, int, int, int, int | None], hashes: Hashes
) -> Iterator[str]:
    space, seq, cseq, head, live, stored, swept, closed_ms = row
    log = view.rows(LOG, space=space)
    positions = [pos for _seq, pos, *_ in log]
    if any(a >= b for a, b in pairwise(positions)):
        yield f"space {space}: positions do not rise with seq"
    if log and (log[-1][0] > seq or log[-1][1] > head):
        yield f"space {space}: its log goes to {log[-1][:2]}, the space itself only to {(seq, head)}"
    numbers = {number for _seq, _pos, number, *_ in log}
    if len(numbers) != len(log) or not all(0 < number <= cseq for number in numbers):
        yield f"space {space}: entity numbers outside 1 to {cseq}, or twice"
    if len(log) + swept != cseq:
        yield f"space {space}: {cseq} entities so far, but {len(log)} rows and {swept} swept"
    if closed_ms is None:
        living = {(kind, entity) for *_, kind, entity, died_ms in log if died_ms is None}
        yield from _truth(space, living, live, digest.unsigned(stored), hashes(view, space))


def _truth(
    space: int, living: set[tuple[int, str]], live: int, summed: int, there: Mapping[tuple[int, str], int]
) -> Iterator[str]:
    for kind, entity in sorted(living - there.keys()):
        yield f"space {space}: entry without entity, kind {kind}, {entity}"
    for kind, entity in sorted(there.keys() - living):
        yield f"space {space}: entity without entry, kind {kind}, {entity}"
    if live != len(there):
        yield f"space {space}: counts {live} living, there are {len(there)}"
    if summed != (right := digest.total(there.values())):
        yield f"space {space}: its digest is {summed:016x}, its entities make {right:016x}"


def _links(view: Snapshot) -> Iterator[str]:
    before = (0, 0)
    for owner, space, inside, base, cut, left_ms, last, seq, cseq, head in view.rows(LINKS):
        name = f"link of {owner} to the space {space}"
        if last is None:
            yield f"{name}: the owner has no feed"
            continue
        if seq is None or cseq is None or head is None:
            yield f"{name}: the space is not there"
            continue
        if bool(inside) != (left_ms is None):
            yield f"{name}: inside and left at once, or neither"
        if not 0 <= cut <= (seq if inside else cseq):
            yield f"{name}: cut at {cut}, the log has {seq} changes and {cseq} entities"
        if base + cut > last or (inside and head > last):
            yield f"{name}: reaches {max(base + cut, head if inside else 0)}, the head of the feed is {last}"
        if cut > 0:
            if before[0] == owner and base < before[1]:
                yield f"{name}: its range overlaps another"
            before = (owner, base + cut)
