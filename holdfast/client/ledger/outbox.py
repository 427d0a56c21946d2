"""What waits to be sent, in order of dependency. Actions on the replica; no network.

A batch is book changes, then bill changes (in books that the server has, or gets in the same batch), then deletions
from the leaves up. Images go by themselves: they are files.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.client.ledger import rows
from holdfast.client.ledger.model import HELD, NOT_SYNCED, SENT, SYNCED, UPDATED, Image
from holdfast.client.ledger.wire import encode
from holdfast.client.replica import Transaction, View

MOST = 500
MOST_BYTES = 700 * 1024  # of a JSON body; the server takes 1 MiB

OpName = Literal["create", "update", "delete"]

WAITING = f"synced IN ({NOT_SYNCED}, {UPDATED}) AND refusal IS NULL"
"""Not synced, not on its way, not parked."""


class Op(Struct, frozen=True):
    """One row to send, as it is now."""

    op: OpName
    entity: str
    id: str
    rev: int
    data: msgspec.Raw

    def encoded(self) -> bytes:
        return b'{"op":"%s","entity":"%s","id":"%s","data":%s}' % (
            self.op.encode(),
            self.entity.encode(),
            self.id.encode(),
            bytes(self.data),
        )


def next_batch(tx: Transaction, most: int, putting_off: Collection[str]) -> list[Op]:
    """Takes what is to go next, and notes that the server may know it from now on."""
    ops = _changes(tx, most, putting_off)
    if len(ops) < most:
        ops += _deletions(tx, most - len(ops), putting_off)
    ops = _within(ops, MOST_BYTES)
    for kind in rows.KINDS:
        sent = [(op.rev, op.id) for op in ops if op.entity == kind]
        if sent:
            tx.many(
                f"UPDATE {kind} SET sent_rev = ?, known = max(known, {SENT}) WHERE id = ?",
                sent,
            )
    return ops


def _changes(view: View, most: int, putting_off: Collection[str]) -> list[Op]:
    ops: list[Op] = []
    for row in view.rows(f"{_BOOKS} ORDER BY id LIMIT ?", most + len(putting_off)):
        book = rows.as_book(row[2:])
        if book.id not in putting_off:
            ops.append(_upsert(row[0], row[1], "book", book.id, rows.book_content(book)))
    if len(ops) >= most:
        return ops[:most]  # bills of books that are in no batch yet wait for the next one
    off = rows.json_list(putting_off)
    for row in view.rows(f"{_BILLS} ORDER BY id LIMIT ?", off, off, most - len(ops)):
        bill = rows.as_bill(row[2:])
        ops.append(_upsert(row[0], row[1], "bill", bill.id, rows.bill_content(bill)))
    return ops


def _upsert(known: object, rev: object, kind: str, identity: str, content: dict[str, object]) -> Op:
    assert isinstance(rev, int)
    return Op("update" if known == HELD else "create", kind, identity, rev, msgspec.Raw(encode(content)))


def _deletions(view: View, most: int, putting_off: Collection[str]) -> list[Op]:
    ops: list[Op] = []
    for kind in ("image", "bill", "book"):
        found = view.rows(
            f"SELECT id, rev FROM {kind} WHERE {WAITING} AND deleted = 1"
            f" AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?",
            rows.json_list(putting_off),
            most - len(ops),
        )
        ops += [
            Op("delete", kind, str(identity), int(rev or 0), msgspec.Raw(b"{}")) for identity, rev in found
        ]
    return ops


def _within(ops: Sequence[Op], limit: int) -> list[Op]:
    size, kept = 0, list[Op]()
    for op in ops:
        size += len(op.data) + 100
        if kept and size > limit:
            break
        kept.append(op)
    return kept


# -- images: files, one request each


class Upload(Struct, frozen=True):
    image: Image
    op: Op


def next_image(tx: Transaction, putting_off: Collection[str]) -> Upload | None:
    """An image whose bill the server has."""
    row = tx.row(
        f"{_IMAGES} AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT 1",
        rows.json_list(putting_off),
    )
    if row is None:
        return None
    image = rows.as_image(row[2:])
    rev = int(row[1] or 0)
    tx.execute(f"UPDATE image SET sent_rev = ?, known = max(known, {SENT}) WHERE id = ?", rev, image.id)
    return Upload(image, Op("create", "image", image.id, rev, msgspec.Raw(b"{}")))


# -- questions


def is_held(view: View, book_id: str) -> bool:
    """The server has it."""
    return bool(view.value(f"SELECT 1 FROM book WHERE id = ? AND known = {HELD}", book_id))


def pending(view: View) -> int:
    return sum(
        view.number(f"SELECT count(*) FROM {kind} WHERE synced <> {SYNCED} AND refusal IS NULL")
        for kind in rows.KINDS
    )


def parked(view: View) -> int:
    return sum(
        view.number(f"SELECT count(*) FROM {kind} WHERE synced <> {SYNCED} AND refusal IS NOT NULL")
        for kind in rows.KINDS
    )


_BOOKS = f"SELECT known, rev, id, {', '.join(rows.BOOK_FIELDS)}, synced, refusal FROM book WHERE {WAITING} AND deleted = 0"
_BILLS = f"""SELECT known, rev, id, {", ".join(rows.BILL_FIELDS)}, synced, refusal FROM bill
    WHERE {WAITING} AND deleted = 0
    AND id NOT IN (SELECT value FROM json_each(?))
    AND book_id IN (SELECT id FROM book WHERE deleted = 0 AND (known = {HELD}
        OR (refusal IS NULL AND id NOT IN (SELECT value FROM json_each(?)))))"""
_IMAGES = f"""SELECT known, rev, id, {", ".join(rows.IMAGE_FIELDS)}, synced, refusal FROM image
    WHERE {WAITING} AND deleted = 0
    AND bill_id IN (SELECT id FROM bill WHERE known = {HELD} AND deleted = 0)
    AND book_id IN (SELECT id FROM book WHERE deleted = 0)"""
