"""How content becomes a blob: announced, then its file is put in place, then settled. Each is one transaction.

    announce → the name is in `blob_file` as arriving         nothing is at that name yet
    (the file is put there, durably)
    settle   → the name moves from `blob_file` to `blob`      from here on it can be referred to

Whoever wants the file removed has to take the arriving row away first, and then `settle` fails. This module knows
rows; the file is `upload`'s business.
"""

from __future__ import annotations

import msgspec

from holdfast.blobs import queries as sql
from holdfast.blobs.model import Blob, Condemned, Digest
from holdfast.blobs.references import find, find_by_md5
from holdfast.errors import DigestTaken, FilesUnavailable
from holdfast.store import Transaction


class Claim(msgspec.Struct, frozen=True):
    """For whom the new blob is kept until somebody refers to it."""

    holder: str
    until_ms: int


class Settled(msgspec.Struct, frozen=True):
    """`blob` is there; our file is superfluous when another upload of the same content was first."""

    blob: Blob
    superfluous: bool


def announce(tx: Transaction, digest: Digest, name: str, claim: Claim, now_ms: int) -> Blob | None:
    """Answers the blob when the content is here already (and claims it); else the file may be put in place."""
    there = _claimed(tx, digest, claim)
    if there is not None:
        return there
    _refuse_taken_md5(tx, digest)
    tx.execute(sql.ANNOUNCE, name=name, now=now_ms)
    return None


def settle(tx: Transaction, digest: Digest, name: str, claim: Claim, now_ms: int) -> Settled:
    """The file is in place: from now on its content is a blob, ours or that of whoever was first."""
    if not tx.execute(sql.ARRIVED, name=name):
        raise FilesUnavailable("this upload took so long that it was given up; send it again")
    made = tx.execute(
        sql.INSERT, sha256=digest.sha256, md5=digest.md5, size=digest.size, name=name, now=now_ms
    )
    there = _claimed(tx, digest, claim)
    if there is None:
        # a rival's row stood in our way and is gone again, or it has our MD5 and other content
        _refuse_taken_md5(tx, digest)
        raise FilesUnavailable
    if made:
        return Settled(there, superfluous=False)
    tx.execute(sql.CONDEMN_NAME, name=name, now=now_ms)
    tx.after(Condemned(name))
    return Settled(there, superfluous=True)


def abandon(tx: Transaction, name: str, now_ms: int) -> bool:
    """The upload failed after it was announced. Harmless if it was settled after all: answers False."""
    if not tx.execute(sql.CONDEMN_ARRIVING, name=name, now=now_ms):
        return False
    tx.after(Condemned(name))
    return True


def _claimed(tx: Transaction, digest: Digest, claim: Claim) -> Blob | None:
    there = tx.row(sql.LOCK, sha256=digest.sha256)
    if there is not None:
        tx.execute(sql.CLAIM, sha256=digest.sha256, holder=claim.holder, until=claim.until_ms)
    return there


def _refuse_taken_md5(tx: Transaction, digest: Digest) -> None:
    taken = find_by_md5(tx, digest.md5)
    if taken is not None and find(tx, digest.sha256) is None:
        raise DigestTaken(data={"md5": digest.md5})
