"""Who keeps a blob: references, counted, and claims, for a while. Functions over the caller's transaction.

    reference(tx, sha256, now, holder="library:42")    # raises FileMissing; ends that holder's claim
    release(tx, sha256, now)                           # the last one lets the file go after the commit

A reference is a row of some room that names the blob; that room counts it here in the same transaction. A claim
says that somebody has just brought (or proved to have) the content and may soon refer to it. This module knows
rows, and no files: a blob's row is there only while its file is.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.blobs import queries as sql
from holdfast.blobs.model import Blob, Orphaned
from holdfast.errors import FileMissing
from holdfast.store import Snapshot, Transaction


def find(view: Snapshot, sha256: str) -> Blob | None:
    return view.row(sql.FIND, sha256=sha256)


def find_by_md5(view: Snapshot, md5: str) -> Blob | None:
    """The one blob with this MD5: a second one with other content is never let in (`DigestTaken`)."""
    return view.row(sql.FIND_BY_MD5, md5=md5)


def reference(tx: Transaction, sha256: str, now_ms: int, *, holder: str | None = None) -> None:
    """One more row refers to this blob. The claim of `holder` has done its work and ends."""
    adjust(tx, {sha256: 1}, now_ms, holder=holder)


def release(tx: Transaction, sha256: str, now_ms: int) -> None:
    """One row less refers to this blob; without any, and without claims, it goes after the commit."""
    adjust(tx, {sha256: -1}, now_ms)


def adjust(tx: Transaction, changes: Mapping[str, int], now_ms: int, *, holder: str | None = None) -> None:
    """Counts many references at once, positive and negative, in the one order in which blobs are locked.

    A transaction that touches several blobs calls this once, with its sums.
    """
    wanted = {sha256: change for sha256, change in changes.items() if change}
    if not wanted:
        return
    there = {blob.sha256: blob.refs for blob in tx.rows(sql.LOCK_ALL, sha256s=list(wanted))}
    for sha256, change in wanted.items():
        if sha256 not in there:
            raise FileMissing(data={"sha256": sha256})
        if there[sha256] + change < 0:
            raise ValueError(f"blob {sha256} was released more often than referenced")
    tx.execute(sql.COUNT, changes=msgspec.json.encode(list(wanted.items())).decode(), now=now_ms)
    for sha256, change in wanted.items():
        if there[sha256] + change == 0:
            tx.after(Orphaned(sha256))
    begun = [sha256 for sha256, change in wanted.items() if change > 0]
    if begun and holder is not None:
        tx.execute(sql.UNCLAIM_ALL, sha256s=begun, holder=holder)


def claim(tx: Transaction, sha256: str, holder: str, until_ms: int) -> Blob:
    """Keeps the blob for `holder` until then (never shorter than an earlier claim of theirs)."""
    blob = tx.row(sql.LOCK, sha256=sha256)
    if blob is None:
        raise FileMissing(data={"sha256": sha256})
    tx.execute(sql.CLAIM, sha256=sha256, holder=holder, until=until_ms)
    return blob


def unclaim(tx: Transaction, sha256: str, holder: str) -> None:
    """`holder` does not want it any more."""
    blob = tx.row(sql.LOCK, sha256=sha256)
    if blob is None:
        return
    tx.execute(sql.UNCLAIM, sha256=sha256, holder=holder)
    if blob.refs == 0:
        tx.after(Orphaned(sha256))
