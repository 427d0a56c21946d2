"""What an app changes, in the replica alone: each is one transaction, checked against ownership before it writes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.client.errors import NotHere, NotOwner
from holdfast.client.ledger import rows
from holdfast.client.ledger.model import HELD, NEVER_SENT, NOT_SYNCED, SYNCED, UPDATED, Bill, Book, Image
from holdfast.client.ledger.rules import is_mine
from holdfast.client.ledger.wire import encode
from holdfast.client.replica import Transaction, Value, View

OUTBOX = "ledger.outbox"
"""The topic of everything that waits to be sent."""
LEDGER = "ledger"
BOOKS = "ledger.books"
FEED = "ledger"


def in_book(book_id: str) -> str:
    """The topic of what is in one book."""
    return f"ledger.book.{book_id}"


def get_book(view: View, book_id: str) -> Book:
    found = view.row(rows.BOOK, book_id)
    if found is None:
        raise NotHere(f"there is no book {book_id} in this replica")
    return rows.as_book(found)


def get_bill(view: View, bill_id: str) -> Bill:
    found = view.row(rows.BILL, bill_id)
    if found is None:
        raise NotHere(f"there is no bill {bill_id} in this replica")
    return rows.as_bill(found)


def get_image(view: View, image_id: str) -> Image:
    found = view.row(rows.IMAGE, image_id)
    if found is None:
        raise NotHere(f"there is no image {image_id} in this replica")
    return rows.as_image(found)


def add_book(tx: Transaction, book: Book) -> Book:
    _insert(tx, "book", book.id, rows.book_values(rows.wire_book(book)))
    tx.changed(OUTBOX, LEDGER, BOOKS)
    return book


def add_bill(tx: Transaction, bill: Bill) -> Bill:
    get_book(tx, bill.book_id)
    _insert(tx, "bill", bill.id, rows.bill_values(rows.wire_bill(bill)))
    tx.changed(OUTBOX, LEDGER, in_book(bill.book_id))
    return bill


def add_image(tx: Transaction, me: str, image: Image) -> Image:
    """`image.book_id` is filled in from its bill."""
    bill = get_bill(tx, image.bill_id)
    if not is_mine(bill.crt_user, me):
        raise NotOwner("only who made a bill adds images to it")
    image = msgspec.structs.replace(image, book_id=bill.book_id)
    values = [getattr(image, name) for name in rows.IMAGE_FIELDS]
    _insert(tx, "image", image.id, values)
    tx.changed(OUTBOX, LEDGER, in_book(bill.book_id))
    return image


def _insert(tx: Transaction, kind: str, identity: str, values: rows.Row) -> None:
    fields = rows.FIELDS[kind]
    marks = ", ".join("?" for _ in range(len(fields) + 1))
    tx.execute(
        f"INSERT INTO {kind} (id, {', '.join(fields)}, version, known, synced, rev, seen)"
        f" VALUES ({marks}, 0, {NEVER_SENT}, {NOT_SYNCED}, 1, 0)",
        identity,
        *values,
    )


def change_book(
    tx: Transaction, me: str, book_id: str, changes: Mapping[str, Value], *, uplink: bool
) -> Book:
    book = get_book(tx, book_id)
    if not is_mine(book.crt_user_id, me):
        raise NotOwner("only who made a book changes it")
    _change(tx, "book", book.id, changes, encode(rows.wire_book(book)).decode(), uplink=uplink)
    tx.changed(OUTBOX, LEDGER, BOOKS)
    return get_book(tx, book_id)


def change_bill(
    tx: Transaction, me: str, bill_id: str, changes: Mapping[str, Value], *, uplink: bool
) -> Bill:
    bill = get_bill(tx, bill_id)
    if not is_mine(bill.crt_user, me):
        raise NotOwner("only who made a bill changes it")
    _change(tx, "bill", bill.id, changes, encode(rows.wire_bill(bill)).decode(), uplink=uplink)
    tx.changed(OUTBOX, LEDGER, in_book(bill.book_id))
    return get_bill(tx, bill_id)


def _change(
    tx: Transaction, kind: str, identity: str, changes: Mapping[str, Value], before: str, *, uplink: bool
) -> None:
    """A synced row's state is the server's: it is kept as `base` while ours is another one."""
    sets = "".join(f"{name} = ?, " for name in changes)
    state = f"CASE WHEN known = {HELD} THEN {UPDATED} ELSE {NOT_SYNCED} END" if uplink else str(NOT_SYNCED)
    tx.execute(
        f"UPDATE {kind} SET {sets} rev = rev + 1, refusal = NULL,"
        f" base = CASE WHEN synced = {SYNCED} THEN ? ELSE base END, synced = {state} WHERE id = ?",
        *changes.values(),
        before,
        identity,
    )


def delete_book(tx: Transaction, me: str, book_id: str) -> None:
    book = get_book(tx, book_id)
    if not is_mine(book.crt_user_id, me):
        raise NotOwner("only who made a book deletes it; a member leaves it")
    if not _hide(tx, "book", book_id):
        tx.execute("DELETE FROM image WHERE book_id = ?", book_id)
        tx.execute("DELETE FROM bill WHERE book_id = ?", book_id)
    tx.changed(OUTBOX, LEDGER, BOOKS, in_book(book_id))


def delete_bill(tx: Transaction, me: str, bill_id: str) -> None:
    bill = get_bill(tx, bill_id)
    if not is_mine(bill.crt_user, me):
        raise NotOwner("only who made a bill deletes it")
    if not _hide(tx, "bill", bill_id):
        tx.execute("DELETE FROM image WHERE bill_id = ?", bill_id)
    tx.changed(OUTBOX, LEDGER, in_book(bill.book_id))


def delete_image(tx: Transaction, me: str, image_id: str) -> None:
    image = get_image(tx, image_id)
    if not is_mine(get_bill(tx, image.bill_id).crt_user, me):
        raise NotOwner("only who made a bill deletes its images")
    _hide(tx, "image", image_id)
    tx.changed(OUTBOX, LEDGER, in_book(image.book_id))


def _hide(tx: Transaction, kind: str, identity: str) -> bool:
    """Marks it deleted until the server agrees; False: the server cannot know it, so it went at once."""
    if tx.execute(f"DELETE FROM {kind} WHERE id = ? AND known = {NEVER_SENT}", identity):
        return False
    tx.execute(
        f"UPDATE {kind} SET deleted = 1, synced = {NOT_SYNCED}, rev = rev + 1, refusal = NULL WHERE id = ?",
        identity,
    )
    return True


def claim_anonymous(tx: Transaction, me: str) -> None:
    """At the first login: what was written before has a maker now."""
    members = rows.json_list([me])
    tx.execute("UPDATE book SET crt_user = ?, members = ? WHERE crt_user = ''", me, members)
    tx.execute("UPDATE bill SET crt_user = ? WHERE crt_user = ''", me)
    tx.execute("UPDATE image SET crt_user = ? WHERE crt_user = ''", me)
    tx.changed(OUTBOX, LEDGER, BOOKS)


def retry(tx: Transaction, identity: str) -> None:
    """Sends a parked row again as it is."""
    if not sum(tx.execute(f"UPDATE {kind} SET refusal = NULL WHERE id = ?", identity) for kind in rows.KINDS):
        raise NotHere(f"nothing with the id {identity} is in this replica")
    tx.changed(OUTBOX, LEDGER, BOOKS)
