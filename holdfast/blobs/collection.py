"""How a blob goes: condemned, then its file is removed, then its name is forgotten.

    condemn → the row leaves `blob`, its name enters `blob_file`    from here on it cannot be referred to
    (the file is removed)
    forget  → the name leaves `blob_file`

Nothing removes a file whose name is not committed as condemned. This module knows rows; `collector` does the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.blobs import queries as sql
from holdfast.store import Snapshot, Transaction

TURN = 200


def condemnable(view: Snapshot, now_ms: int) -> list[str]:
    """Some blobs that nobody seems to keep. A guess: `condemn` looks again, under the lock."""
    return view.rows(sql.CONDEMNABLE, now=now_ms, limit=TURN)


def condemn(tx: Transaction, sha256s: Iterable[str], now_ms: int) -> list[str]:
    """Condemns those that nobody keeps; answers the names of their files.

    A blob that somebody else has locked is left for the next sweep: it is being referred to or claimed.
    """
    if tx.one(sql.GATE) > now_ms:
        return []
    names = []
    for sha256 in sorted(set(sha256s)):
        blob = tx.row(sql.LOCK_IF_FREE, sha256=sha256)
        if blob is None or blob.refs > 0:
            continue
        # a statement of its own: it sees the claims that were committed while we waited for the lock
        if (tx.row(sql.CLAIMED_UNTIL, sha256=sha256) or 0) > now_ms:
            continue
        tx.execute(sql.DELETE, sha256=sha256)
        tx.execute(sql.CONDEMN_NAME, name=blob.name, now=now_ms)
        names.append(blob.name)
    return names


def condemn_late(tx: Transaction, before_ms: int, now_ms: int) -> int:
    """Gives up on files announced before then and never settled: their uploader is gone."""
    late = tx.rows(sql.OLD_ARRIVING, before=before_ms, limit=TURN)
    return sum(tx.execute(sql.CONDEMN_ARRIVING, name=name, now=now_ms) for name in late)


def condemned(view: Snapshot, above: str = "") -> list[str]:
    return view.rows(sql.CONDEMNED, above=above, limit=TURN)


def forget(tx: Transaction, names: Iterable[str]) -> int:
    """The files are gone for good."""
    return sum(tx.execute(sql.FORGET, name=name) for name in sorted(names))


def drop_ended_claims(tx: Transaction, now_ms: int) -> int:
    return tx.execute(sql.DROP_ENDED_CLAIMS, now=now_ms, limit=1000)


def unknown(view: Snapshot, names: Sequence[str]) -> list[str]:
    """Which of these names no table holds."""
    known = view.rows(sql.KNOWN_FILES, names=list(names))
    return sorted(set(names).difference(known))


def shut_until(view: Snapshot) -> int:
    return view.one(sql.SHUT_UNTIL)


def shut_gate(tx: Transaction, until_ms: int) -> None:
    """Nothing is condemned or removed until then: after this commit whatever a snapshot holds keeps its file."""
    tx.execute(sql.SHUT_GATE, until=until_ms)
