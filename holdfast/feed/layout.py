"""Where in the feeds the turns of one transaction go. Pure.

A transaction takes one stretch of positions, the same numbers in every feed it touches:

    first                                                        staying_end              leaving_end
      │ joined: all that was there │ changes │ next space's …          │ left: a deletion each │ …
      base+1 …           base+seq   pos …                               base+1 …      base+cseq

The changes of a turn that somebody joins directly continue the stretch of what was there: one formula,
`base + seq`, places both for the newcomer, and the members' `pos` is the same number.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Shape(msgspec.Struct, frozen=True):
    """What is known of a turn before the feeds are locked."""

    seq: int
    cseq: int
    changes: int
    joined: bool
    left: bool


class Place(msgspec.Struct, frozen=True):
    """Offsets from the transaction's first position: of its first change, and of the two bases."""

    pos: int
    join_base: int
    leave_base: int


class Layout(msgspec.Struct, frozen=True):
    places: tuple[Place, ...]
    staying: int
    """How many positions everyone takes who stays."""
    leaving: int
    """How many whoever leaves takes: those, and the deletions."""


def lay_out(shapes: Sequence[Shape]) -> Layout:
    at = 0
    ahead: list[tuple[int, int]] = []
    for shape in shapes:
        base = at - 1
        if shape.joined:
            at += shape.seq
        ahead.append((at, base))
        at += shape.changes
    staying = at
    places: list[Place] = []
    for shape, (pos, join_base) in zip(shapes, ahead, strict=True):
        places.append(Place(pos, join_base, at - 1))
        if shape.left:
            at += shape.cseq + shape.changes  # at the most: how many of the changes are new is not known yet
    return Layout(tuple(places), staying, at)
