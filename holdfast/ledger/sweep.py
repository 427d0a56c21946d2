"""Removes what is only kept for a time: codes, answers to the uplink, files of deleted books, rows of the dead.

By wall time. A deleted book's files go soon; dead rows stay as long as the feed keeps deletions, so that whoever
deletes or changes one late is told that it was deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from holdfast import blobs
from holdfast.feed.sweep import GRACE_MS
from holdfast.store import Query, Statement, Transaction

TURN_ROWS = 1_000
UPLINK_MS = 7 * 24 * 3_600_000

OLD_CODES = Statement(
    """
    DELETE FROM ledger_code WHERE code IN
        (SELECT code FROM ledger_code WHERE expires_ms <= :now ORDER BY expires_ms LIMIT :limit)
        AND expires_ms <= :now
    """
)
OLD_MESSAGES = Statement(
    """
    DELETE FROM ledger_uplink WHERE (author, id) IN
        (SELECT author, id FROM ledger_uplink WHERE taken_ms <= :before ORDER BY taken_ms LIMIT :limit)
    """
)
NOT_EMPTIED = Query(
    int,
    "SELECT space FROM ledger_book WHERE deleted_ms IS NOT NULL AND emptied = FALSE ORDER BY deleted_ms LIMIT 1",
)
LIVING_IMAGES = Query(
    tuple[str, str],
    "SELECT id, sha256 FROM ledger_image WHERE space = :space AND deleted_ms IS NULL LIMIT :limit FOR UPDATE",
)
DROP_IMAGES = Statement("UPDATE ledger_image SET deleted_ms = :now WHERE id = ANY(:ids)")
SET_EMPTIED = Statement("UPDATE ledger_book SET emptied = TRUE WHERE space = :space AND emptied = FALSE")
DEAD_IMAGES = Statement(
    """
    DELETE FROM ledger_image WHERE id IN
        (SELECT id FROM ledger_image WHERE deleted_ms < :before ORDER BY deleted_ms LIMIT :limit)
    """
)
DEAD_BILLS = Statement(
    """
    DELETE FROM ledger_bill WHERE id IN
        (SELECT id FROM ledger_bill WHERE deleted_ms < :before ORDER BY deleted_ms LIMIT :limit)
    """
)
OLD_BOOK = Query(
    tuple[str, int],
    "SELECT id, space FROM ledger_book WHERE deleted_ms < :before AND emptied = TRUE ORDER BY deleted_ms LIMIT 1",
)
ITS_BILLS = Statement(
    "DELETE FROM ledger_bill WHERE id IN (SELECT id FROM ledger_bill WHERE space = :space"
    " AND deleted_ms IS NULL LIMIT :limit)"
)
DROP_BOOK = Statement("DELETE FROM ledger_book WHERE id = :id")


def sweep(tx: Transaction, now_ms: int, keep_ms: int) -> int:
    """One turn, for `Database.write_in_turns`: at most 1,000 rows; answers how many, 0 when all is done."""
    parts: tuple[Callable[[Transaction, int, int], int], ...] = (_codes, _messages, _files, _rows, _books)
    for part in parts:
        rows = part(tx, now_ms, keep_ms)
        if rows:
            return rows
    return 0


def _codes(tx: Transaction, now_ms: int, _keep_ms: int) -> int:
    return tx.execute(OLD_CODES, now=now_ms, limit=TURN_ROWS)


def _messages(tx: Transaction, now_ms: int, _keep_ms: int) -> int:
    return tx.execute(OLD_MESSAGES, before=now_ms - UPLINK_MS, limit=TURN_ROWS)


def _files(tx: Transaction, now_ms: int, _keep_ms: int) -> int:
    """Lets go of the files of a deleted book's images."""
    space = tx.row(NOT_EMPTIED)
    if space is None:
        return 0
    images = tx.rows(LIVING_IMAGES, space=space, limit=TURN_ROWS)
    if not images:
        return tx.execute(SET_EMPTIED, space=space)
    tx.execute(DROP_IMAGES, ids=[id_ for id_, _ in images], now=now_ms)
    let_go = Counter(sha256 for _, sha256 in images)
    blobs.adjust(tx, {sha256: -count for sha256, count in let_go.items()}, now_ms)
    return len(images)


def _rows(tx: Transaction, now_ms: int, keep_ms: int) -> int:
    before = now_ms - keep_ms - GRACE_MS
    return tx.execute(DEAD_IMAGES, before=before, limit=TURN_ROWS) or tx.execute(
        DEAD_BILLS, before=before, limit=TURN_ROWS
    )


def _books(tx: Transaction, now_ms: int, keep_ms: int) -> int:
    """A book that was deleted long ago: its bills, then itself."""
    found = tx.row(OLD_BOOK, before=now_ms - keep_ms - GRACE_MS)
    if found is None:
        return 0
    id_, space = found
    return tx.execute(ITS_BILLS, space=space, limit=TURN_ROWS) or tx.execute(DROP_BOOK, id=id_)
