"""What a room brings to the fault harness: its own clients, and its own proof that nothing was lost.

The harness (`storm`) starts the server, lets every `Operations` work on it, kills it, starts it again, and asks
every `Operations` to verify. It knows no room; a room knows no kills. See docs/rooms/faults.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

Doors = Mapping[str, str]
"""Each door's address, as in the ready file: `{"http": "127.0.0.1:41234"}`."""


class Lost(AssertionError):
    """The server broke a promise: the sentence says which, with the numbers to look for."""


class Figures(msgspec.Struct):
    """What happened so far, counted by the clients."""

    acknowledged: int = 0
    """Operations whose success was heard."""
    unknown: int = 0
    """Operations that were cut before an answer, or answered with 503: they may have happened, or not."""
    replayed: int = 0
    """Acknowledged operations sent once more, and answered as the first time."""

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.acknowledged + other.acknowledged,
            self.unknown + other.unknown,
            self.replayed + other.replayed,
        )


class Operations(Protocol):
    figures: Figures

    async def work(self, doors: Doors) -> None:
        """Load from real clients, until cancelled. Outlives every broken connection: while the server is away its
        clients try again every few milliseconds. What they heard, and what they cannot know, is remembered."""

    async def verify(self, doors: Doors) -> None:
        """The server has come back, and nobody works on it. Raises `Lost` if an acknowledged operation is not there as
        it was acknowledged, if one is there in half, or if something is there that nobody asked for."""
