"""Who is in a space, and where an entity stands in somebody's feed: reads by key, for the rooms."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.feed.space import MEMBERS_OF_MANY
from holdfast.store import Query, Snapshot

INSIDE = Query(int, "SELECT 1 FROM feed_link WHERE owner = :owner AND space = :space AND inside = TRUE")
SPACES = Query(int, "SELECT space FROM feed_link WHERE owner = :owner AND inside = TRUE ORDER BY space")
LEFT = Query(
    tuple[int, int | None],
    """
    SELECT l.left_ms, s.closed_ms FROM feed_link l JOIN feed_space s ON s.space = l.space
    WHERE l.owner = :owner AND l.space = :space AND l.inside = FALSE
    """,
)
PLACE = Query(
    tuple[int, int, int, int, int, int],
    """
    SELECT g.seq, g.pos, g.cseq, l.inside, l.base, l.cut
    FROM feed_log g JOIN feed_link l ON l.space = g.space AND l.owner = :owner
    WHERE g.entity = :entity AND g.kind = :kind AND g.space = :space
    """,
)


def is_inside(view: Snapshot, owner: int, space: int) -> bool:
    return view.row(INSIDE, owner=owner, space=space) is not None


def spaces_of(view: Snapshot, owner: int) -> list[int]:
    """The spaces that he is in."""
    return view.rows(SPACES, owner=owner)


def members_of(view: Snapshot, spaces: Collection[int]) -> dict[int, list[int]]:
    """The members of each of the spaces, by number."""
    found: dict[int, list[int]] = {space: [] for space in spaces}
    for space, owner in view.rows(MEMBERS_OF_MANY, spaces=list(found)):
        found[space].append(owner)
    return found


def was_ever_inside(view: Snapshot, owner: int, space: int) -> bool:
    """He left, or was made to, and his link was not swept yet."""
    return view.row(LEFT, owner=owner, space=space) is not None


def was_inside_at_the_end(view: Snapshot, owner: int, space: int) -> bool:
    """The space is closed, and he was in it until then."""
    found = view.row(LEFT, owner=owner, space=space)
    return found is not None and found[0] == found[1]


def version_of(view: Snapshot, owner: int, space: int, kind: int, entity: str) -> int | None:
    """Where the entity's latest change stands in his feed, if it is in it."""
    found = view.row(PLACE, owner=owner, space=space, kind=kind, entity=entity)
    if found is None:
        return None
    seq, pos, cseq, inside, base, cut = found
    if inside:
        return base + seq if seq <= cut else pos
    return base + cseq if cseq <= cut else None
