"""Uploads that continue where they stopped: what the database knows of them. Functions over a transaction.

A partial upload is the list of its pieces, each a file of its own that is announced, put in place and then counted
here; so `received` never promises a byte that a restart could lose, on a disk as in an object store.
"""

from __future__ import annotations

from holdfast.blobs import queries as sql
from holdfast.blobs.model import Condemned, Partial
from holdfast.errors import FileGone, FilesUnavailable, TooLarge, WrongOffset
from holdfast.store import Snapshot, Transaction

TURN = 100


def begin(tx: Transaction, partial: Partial) -> Partial:
    if partial.room < 0 or partial.room > partial.most:
        raise TooLarge(f"the file is larger than the {partial.most} bytes that are allowed")
    tx.execute(
        sql.BEGIN_PARTIAL,
        id=partial.id,
        holder=partial.holder,
        most=partial.most,
        length=partial.length,
        note=partial.note,
        expires=partial.expires_ms,
    )
    return partial


def status(view: Snapshot, upload_id: str, now_ms: int) -> Partial:
    partial = view.row(sql.PARTIAL, id=upload_id, now=now_ms)
    if partial is None:
        raise FileGone("there is no such upload, or it has expired")
    return partial


def _locked(tx: Transaction, upload_id: str, now_ms: int) -> Partial:
    partial = tx.row(sql.LOCK_PARTIAL, id=upload_id, now=now_ms)
    if partial is None:
        raise FileGone("there is no such upload, or it has expired")
    return partial


def declare_length(tx: Transaction, upload_id: str, length: int, now_ms: int) -> Partial:
    """The length, when it was not known at the beginning. Once declared it stays."""
    partial = _locked(tx, upload_id, now_ms)
    if partial.length not in (None, length) or length < partial.received:
        raise WrongOffset(partial.received)
    if length > partial.most:
        raise TooLarge(f"the file is larger than the {partial.most} bytes that are allowed")
    tx.execute(sql.SET_LENGTH, id=upload_id, length=length)
    return status(tx, upload_id, now_ms)


def announce_piece(tx: Transaction, name: str, now_ms: int) -> None:
    tx.execute(sql.ANNOUNCE, name=name, now=now_ms)


def grow(
    tx: Transaction, upload_id: str, start: int, size: int, name: str, now_ms: int, expires_ms: int
) -> Partial:
    """The piece is in place. Of two that begin at the same offset one is taken."""
    if not tx.execute(sql.ARRIVED, name=name):
        raise FilesUnavailable("this piece took so long that it was given up; send it again")
    partial = _locked(tx, upload_id, now_ms)
    if partial.received != start or partial.sha256 is not None:
        raise WrongOffset(partial.received)
    if size > partial.room:
        raise TooLarge("this is more than the upload's length")
    tx.execute(sql.ADD_PIECE, partial=upload_id, start=start, size=size, name=name)
    tx.execute(
        sql.GROW_PARTIAL, id=upload_id, received=start + size, expires=max(expires_ms, partial.expires_ms)
    )
    return status(tx, upload_id, now_ms)


def pieces(view: Snapshot, upload_id: str) -> list[tuple[str, int]]:
    return view.rows(sql.PIECES, partial=upload_id)


def finish(tx: Transaction, upload_id: str, sha256: str, received: int, now_ms: int) -> None:
    """It is a blob now. The row stays until it expires, for a client who never heard the answer."""
    partial = _locked(tx, upload_id, now_ms)
    if partial.received != received:
        raise WrongOffset(partial.received)  # somebody appended while it was put together
    tx.execute(sql.FINISH_PARTIAL, id=upload_id, sha256=sha256)
    _condemn_pieces(tx, upload_id, now_ms)


def drop(tx: Transaction, upload_id: str, now_ms: int) -> None:
    """Its client gave it up."""
    _locked(tx, upload_id, now_ms)
    _condemn_pieces(tx, upload_id, now_ms)
    tx.execute(sql.DROP_PARTIAL, id=upload_id)


def expire(tx: Transaction, now_ms: int) -> int:
    """Removes uploads that nobody continued in time; answers how many (one turn)."""
    ended = tx.rows(sql.ENDED_PARTIALS, now=now_ms, limit=TURN)
    for upload_id in ended:
        _condemn_pieces(tx, upload_id, now_ms)
        tx.execute(sql.DROP_PARTIAL, id=upload_id)
    return len(ended)


def forget_all(tx: Transaction, now_ms: int) -> None:
    """After a restore: pieces are not in a backup, so their uploads begin again."""
    tx.execute(sql.END_ALL_PARTIALS, now=now_ms)


def _condemn_pieces(tx: Transaction, upload_id: str, now_ms: int) -> None:
    for name, _size in pieces(tx, upload_id):
        tx.execute(sql.CONDEMN_NAME, name=name, now=now_ms)
        tx.after(Condemned(name))
    tx.execute(sql.DROP_PIECES, partial=upload_id)
