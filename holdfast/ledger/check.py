"""What `holdfast check` proves of this room: generators of sentences, one per problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.store import Snapshot


def problems(_view: Snapshot) -> Iterator[str]:
    yield from ()


def hashes(_view: Snapshot, _space: int) -> Mapping[tuple[int, str], int]:
    """The living entities of a book and the hashes of their revisions, as the feed's check wants them."""
    return {}


def references(_view: Snapshot) -> Mapping[str, int]:
    """SHA-256 → how many live rows of this room name it."""
    return {}
