"""What the feed is told of a row that changed: the hashes of the revision it had and of the one it has."""

from __future__ import annotations

from holdfast.clock import rfc3339
from holdfast.feed import Change, revision_hash
from holdfast.ledger.model import NAMES


def revision(kind: int, id_: str, upd_ms: int) -> int:
    """The hash that a client computes from its own row."""
    return revision_hash(NAMES[kind], id_, rfc3339(upd_ms))


def added(kind: int, id_: str, upd_ms: int) -> Change:
    return Change(kind, id_, revision(kind, id_, upd_ms))


def changed(kind: int, id_: str, was_ms: int, upd_ms: int) -> Change:
    return Change(kind, id_, revision(kind, id_, upd_ms), revision(kind, id_, was_ms))


def removed(kind: int, id_: str, was_ms: int) -> Change:
    return Change(kind, id_, None, revision(kind, id_, was_ms))
