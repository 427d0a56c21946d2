"""What a client compares its own copy with, without pulling: how many entities live, and a sum over them."""

from __future__ import annotations

from holdfast.feed import Checksum, revision_hash
from holdfast.library import queries as sql
from holdfast.library.model import WORD
from holdfast.store import Snapshot

_WORDS: dict[int, str] = {int(kind): word for kind, word in WORD.items()}


def checksum(view: Snapshot, user_id: int) -> Checksum:
    version = view.row(sql.VERSION, user=user_id) or 0
    living = view.rows(sql.LIVING, user=user_id)
    digest = sum(revision_hash(_WORDS[kind], str(server_id), str(at)) for kind, server_id, at in living)
    return Checksum(len(living), f"{digest % 2**64:016x}", version)
