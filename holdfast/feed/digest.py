"""The running checksum: a sum of revision hashes, kept per space and added in Python.

SQL would overflow: the sums are 64 bits wide without a sign. The columns hold the same bits as a signed number.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from holdfast.feed.head import head
from holdfast.store import Query, Snapshot

_MODULUS = 1 << 64
_SIGN = 1 << 63

SUMS = Query(
    tuple[int, int],
    """
    SELECT s.live, s.digest FROM feed_link l JOIN feed_space s ON s.space = l.space
    WHERE l.owner = :owner AND l.inside = TRUE
    """,
)


class Checksum(msgspec.Struct, frozen=True):
    """What an owner's live entities add up to, at the head `version` of his feed."""

    count: int
    digest: str
    version: int


def revision_hash(kind: str, entity: str, revision: str) -> int:
    """The hash of one revision of one entity; a client computes the same from its own row."""
    return int.from_bytes(sha256(f"{kind}\n{entity}\n{revision}".encode()).digest()[:8])


def checksum(view: Snapshot, owner: int) -> Checksum:
    sums = view.rows(SUMS, owner=owner)
    digest = total(unsigned(digest) for _live, digest in sums)
    return Checksum(sum(live for live, _digest in sums), f"{digest:016x}", head(view, owner))


def total(hashes: Iterable[int]) -> int:
    return sum(hashes) % _MODULUS


def unsigned(stored: int) -> int:
    return stored % _MODULUS


def stored(digest: int) -> int:
    digest %= _MODULUS
    return digest - _MODULUS if digest >= _SIGN else digest
