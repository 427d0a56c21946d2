"""Rows that go although something in them was never delivered: that is written down, so that the app can tell."""

from __future__ import annotations

from holdfast.client.ledger import rows
from holdfast.client.ledger.model import SYNCED
from holdfast.client.ledger.wire import encode
from holdfast.client.replica import Transaction, Value

LOST = "lost"
"""The topic of what was lost."""


def lose(tx: Transaction, kind: str, which: str, *values: Value, reason: str, now_ms: int) -> None:
    """Deletes the rows; those with a change of ours that the server never took go into `lost`."""
    for row in tx.rows(f"{UNSYNCED[kind]} AND {which}", *values):
        match kind:
            case "book":
                book = rows.as_book(row)
                body, identity = encode(rows.book_content(book)), book.id
            case "bill":
                bill = rows.as_bill(row)
                body, identity = encode(rows.bill_content(bill)), bill.id
            case _:
                image = rows.as_image(row)
                body, identity = encode(image), image.id
        keep(tx, kind, identity, body.decode(), reason, now_ms)
    tx.execute(f"DELETE FROM {kind} WHERE {which}", *values)


def keep(tx: Transaction, kind: str, identity: str, body: str, reason: str, now_ms: int) -> None:
    tx.execute(
        "INSERT INTO lost (kind, id, body, reason, lost_ms) VALUES (?, ?, ?, ?, ?)",
        kind,
        identity,
        body,
        reason,
        now_ms,
    )
    tx.changed(LOST)


def take_book(tx: Transaction, book_id: str, reason: str, now_ms: int) -> None:
    """A book that is gone takes everything in it."""
    for kind in ("image", "bill"):
        lose(tx, kind, "book_id = ?", book_id, reason=reason, now_ms=now_ms)
    lose(tx, "book", "id = ?", book_id, reason=reason, now_ms=now_ms)


def remove_book(tx: Transaction, book_id: str) -> None:
    """A book that we gave up ourselves: nothing in it is lost against our will."""
    tx.execute("DELETE FROM image WHERE book_id = ?", book_id)
    tx.execute("DELETE FROM bill WHERE book_id = ?", book_id)
    tx.execute("DELETE FROM book WHERE id = ?", book_id)


UNSYNCED = {
    kind: f"SELECT id, {', '.join(rows.FIELDS[kind])}, synced, refusal FROM {kind}"
    f" WHERE synced <> {SYNCED} AND deleted = 0"
    for kind in rows.KINDS
}
