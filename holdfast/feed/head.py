"""The head of a feed: the highest position its owner can have seen."""

from __future__ import annotations

from holdfast.store import Query, Snapshot

LAST = Query(int, "SELECT last FROM feed_owner WHERE owner = :owner")


def head(view: Snapshot, owner: int) -> int:
    """0 for whoever was never in any space."""
    return view.row(LAST, owner=owner) or 0
