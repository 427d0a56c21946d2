"""What blobs ask of whoever copies the whole store: hold the files still, copy these, forget those.

hold(tx, now)             committed before the snapshot is taken, and again every minute or so
all_blobs(view)           each has a file that stays as long as the hold is renewed
begin_again(tx, now)      in the restored store
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.blobs import collection
from holdfast.blobs import queries as sql
from holdfast.blobs.files import HOLD_SECONDS
from holdfast.blobs.model import Blob
from holdfast.store import Query, Snapshot, Statement, Transaction

PAGE = 1_000
RENEW_SECONDS = HOLD_SECONDS / 3

OPEN_GATE = Statement("UPDATE blob_gate SET shut_until_ms = 0")
FORGET_PARTIALS = Statement("DELETE FROM blob_partial")
FORGET_PIECES = Statement("DELETE FROM blob_piece")
FORGET_FILES = Statement("DELETE FROM blob_file")
NEW_GRACE = Statement("UPDATE blob SET orphan_since_ms = :now WHERE orphan_since_ms IS NOT NULL")
TOTAL = Query(tuple[int, int], "SELECT count(*), CAST(coalesce(sum(size), 0) AS BIGINT) FROM blob")


def hold(tx: Transaction, now_ms: int) -> None:
    """For some minutes no blob is condemned, so that a snapshot taken after this commit keeps its files."""
    collection.shut_gate(tx, now_ms + round(HOLD_SECONDS * 1000))


def total(view: Snapshot) -> tuple[int, int]:
    """How many blobs, and how many bytes."""
    return view.one(TOTAL)


def all_blobs(view: Snapshot) -> Iterator[Blob]:
    above = ""
    while page := view.rows(sql.PAGE, above=above, limit=PAGE):
        yield from page
        above = page[-1].sha256


def begin_again(tx: Transaction, now_ms: int) -> None:
    """In a restored store: files that were arriving or going are not here, and nobody had time to refer to the rest."""
    for statement in (OPEN_GATE, FORGET_PIECES, FORGET_PARTIALS, FORGET_FILES):
        tx.execute(statement)
    tx.execute(NEW_GRACE, now=now_ms)
