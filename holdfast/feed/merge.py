"""Merges ranges into one list by version, reading each only as far as the list needs it.

A range is opened when the merge arrives at its bound; several that interleave are read in pieces that begin small
and double, so that a page of 100 from 50 spaces does not read 5,000 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from holdfast.feed.ranges import Entry

FIRST_PIECE = 16


class Source(Protocol):
    """Entries in order of version, none below `bound` still to come."""

    bound: int
    ended: bool

    def read(self, limit: int) -> list[Entry]: ...


class _Piece:
    """A source and what was read of it but not yet taken."""

    __slots__ = ("at", "entries", "size", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.entries: list[Entry] = []
        self.at = 0
        self.size = FIRST_PIECE

    def fill(self, limit: int) -> bool:
        """Reads the next piece; False when there is none."""
        if self.source.ended:
            return False
        self.entries = self.source.read(limit)
        self.at = 0
        self.size *= 2
        return bool(self.entries)

    @property
    def version(self) -> int:
        return self.entries[self.at].version


def merged(sources: Sequence[Source], limit: int) -> list[Entry]:
    """The `limit` lowest entries of all sources."""
    if len(sources) == 1:
        return sources[0].read(limit)
    # the number beside the bound settles ties between lower bounds; versions themselves never tie
    heap = [(source.bound, number, _Piece(source)) for number, source in enumerate(sources)]
    heapify(heap)
    taken: list[Entry] = []
    while heap and len(taken) < limit:
        _bound, number, piece = heappop(heap)
        if piece.at == len(piece.entries):
            wanted = limit - len(taken)
            if not piece.fill(min(wanted, piece.size) if heap else wanted):
                continue
        else:
            end = heap[0][0] if heap else None
            _take(piece, taken, limit, end)
        if piece.at < len(piece.entries):
            heappush(heap, (piece.version, number, piece))
        elif not piece.source.ended:
            heappush(heap, (taken[-1].version + 1, number, piece))
    return taken


def _take(piece: _Piece, taken: list[Entry], limit: int, end: int | None) -> None:
    """Moves the entries that come before every other source's next one."""
    entries, at = piece.entries, piece.at
    stop = min(len(entries), at + limit - len(taken))
    while at < stop and (end is None or entries[at].version <= end):
        taken.append(entries[at])
        at += 1
    piece.at = at
