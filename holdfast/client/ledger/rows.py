"""The ledger's rows in the replica: their SQL, and how they become what an app or the wire sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.client.ledger.model import Bill, Book, Image, Refusal
from holdfast.client.ledger.wire import Entity, WireBill, WireBook, WireImage
from holdfast.client.replica import Value, View

BOOK_FIELDS = ("name", "type", "banner", "crt_user", "members", "is_initial", "crt_time", "upd_time")
BILL_FIELDS = (
    "book_id",
    "money",
    "type",
    "category",
    "time",
    "remark",
    "crt_user",
    "crt_time",
    "upd_time",
)
IMAGE_FIELDS = (
    "bill_id",
    "book_id",
    "md5",
    "size",
    "mime",
    "ext",
    "online_path",
    "crt_user",
    "upd_time",
)
FIELDS = {"book": BOOK_FIELDS, "bill": BILL_FIELDS, "image": IMAGE_FIELDS}
KINDS = ("book", "bill", "image")

_refusal = msgspec.json.Decoder(Refusal)
_members = msgspec.json.Decoder(tuple[str, ...])


class Sync(Struct, frozen=True):
    """What a row carries besides what it says."""

    version: int
    known: int
    synced: int
    deleted: int
    rev: int
    sent_rev: int
    sent_ms: int
    msg_id: str | None
    seen: int
    base: str | None
    refusal: str | None
    upd_time: str


SYNC = "version, known, synced, deleted, rev, sent_rev, sent_ms, msg_id, seen, base, refusal, upd_time"


def sync_of(view: View, kind: str, identity: str) -> Sync | None:
    found = view.row(f"SELECT {SYNC} FROM {kind} WHERE id = ?", identity)
    return Sync(*found) if found else None  # type: ignore[arg-type]


_BOOK = f"SELECT id, {', '.join(BOOK_FIELDS)}, synced, refusal FROM book"
_BILL = f"SELECT id, {', '.join(BILL_FIELDS)}, synced, refusal FROM bill"
_IMAGE = f"SELECT id, {', '.join(IMAGE_FIELDS)}, synced, refusal FROM image"

BOOKS = f"{_BOOK} WHERE deleted = 0 ORDER BY id"
BOOK = f"{_BOOK} WHERE id = ? AND deleted = 0"
BILLS = f"""{_BILL} WHERE book_id = ? AND deleted = 0 AND time >= ? AND time < ?
    ORDER BY time DESC, id DESC LIMIT ?"""
BILL = f"{_BILL} WHERE id = ? AND deleted = 0 AND book_id IN (SELECT id FROM book WHERE deleted = 0)"
IMAGES = f"{_IMAGE} WHERE bill_id = ? AND deleted = 0 ORDER BY id"
IMAGE = f"{_IMAGE} WHERE id = ? AND deleted = 0 AND bill_id IN (SELECT id FROM bill WHERE deleted = 0)"
PARKED = {
    "book": f"{_BOOK} WHERE synced <> 1 AND refusal IS NOT NULL",
    "bill": f"{_BILL} WHERE synced <> 1 AND refusal IS NOT NULL",
    "image": f"{_IMAGE} WHERE synced <> 1 AND refusal IS NOT NULL",
}

Row = Sequence[Value]


def _refused(text: Value) -> Refusal | None:
    return _refusal.decode(str(text)) if text is not None else None


def as_book(row: Row) -> Book:
    id_, name, type_, banner, crt_user, members, is_initial, crt_time, upd_time, synced, refusal = row
    return Book(
        id=id_,  # type: ignore[arg-type]
        name=name,  # type: ignore[arg-type]
        type=type_,  # type: ignore[arg-type]
        banner=banner,  # type: ignore[arg-type]
        crt_user_id=crt_user,  # type: ignore[arg-type]
        members=_members.decode(str(members)),
        is_initial=None if is_initial is None else bool(is_initial),
        crt_time=crt_time,  # type: ignore[arg-type]
        upd_time=upd_time,  # type: ignore[arg-type]
        synced=synced,  # type: ignore[arg-type]
        refusal=_refused(refusal),
    )


def as_bill(row: Row) -> Bill:
    id_, book_id, money, type_, category, time, remark, crt_user, crt_time, upd_time, synced, refusal = row
    return Bill(
        id_,  # type: ignore[arg-type]
        book_id,  # type: ignore[arg-type]
        Decimal(money),  # type: ignore[arg-type]
        type_,  # type: ignore[arg-type]
        category,  # type: ignore[arg-type]
        time,  # type: ignore[arg-type]
        remark,  # type: ignore[arg-type]
        crt_user,  # type: ignore[arg-type]
        crt_time,  # type: ignore[arg-type]
        upd_time,  # type: ignore[arg-type]
        synced,  # type: ignore[arg-type]
        _refused(refusal) if refusal is not None else None,
    )


def as_image(row: Row) -> Image:
    values: tuple[Any, ...] = (*row[:-1], _refused(row[-1]))
    return Image(*values)


READ = {"book": as_book, "bill": as_bill, "image": as_image}


# -- what the wire says, as the values of FIELDS


def book_values(book: WireBook) -> tuple[Value, ...]:
    initial = None if book.is_initial is None else int(book.is_initial)
    return (
        book.name,
        book.type,
        book.banner,
        book.crt_user_id,
        msgspec.json.encode(book.members).decode(),
        initial,
        book.crt_time,
        book.upd_time,
    )


def bill_values(bill: WireBill) -> tuple[Value, ...]:
    return (
        bill.book_id,
        str(bill.money),
        bill.type,
        bill.category,
        bill.time,
        bill.remark,
        bill.crt_user,
        bill.crt_time,
        bill.upd_time,
    )


def image_values(image: WireImage) -> tuple[Value, ...]:
    return (
        image.bill_id,
        image.book_id,
        image.md5,
        image.size,
        image.mime,
        image.ext,
        image.online_path,
        image.crt_user,
        image.upd_time,
    )


def values_of(entity: Entity) -> tuple[Value, ...]:
    match entity:
        case WireBook():
            return book_values(entity)
        case WireBill():
            return bill_values(entity)
        case WireImage():
            return image_values(entity)


def kind_of(entity: Entity) -> str:
    match entity:
        case WireBook():
            return "book"
        case WireBill():
            return "bill"
        case WireImage():
            return "image"


# -- what a row says, for the wire


def book_content(book: Book) -> dict[str, object]:
    content: dict[str, object] = {"_id": book.id, "name": book.name, "type": book.type}
    if book.banner is not None:
        content["banner"] = book.banner
    if book.is_initial is not None:
        content["is_initial"] = book.is_initial
    return content


def bill_content(bill: Bill) -> dict[str, object]:
    content: dict[str, object] = {
        "_id": bill.id,
        "book_id": bill.book_id,
        "money": bill.money,
        "type": bill.type,
        "category": bill.category,
        "time": bill.time,
    }
    if bill.remark is not None:
        content["remark"] = bill.remark
    return content


def wire_bill(bill: Bill) -> WireBill:
    return WireBill(
        id=bill.id,
        book_id=bill.book_id,
        money=bill.money,
        type=bill.type,
        category=bill.category,
        time=bill.time,
        remark=bill.remark,
        crt_user=bill.crt_user,
        crt_time=bill.crt_time,
        upd_time=bill.upd_time,
    )


def wire_book(book: Book) -> WireBook:
    return WireBook(
        id=book.id,
        name=book.name,
        type=book.type,
        banner=book.banner,
        crt_user_id=book.crt_user_id,
        members=list(book.members),
        is_initial=book.is_initial,
        crt_time=book.crt_time,
        upd_time=book.upd_time,
    )


def says_the_same(mine: Book | Bill, theirs: WireBook | WireBill) -> bool:
    """Whether both say the same, as far as their owner decides it."""
    match mine, theirs:
        case Book(), WireBook():
            return (mine.name, mine.type, mine.banner, bool(mine.is_initial)) == (
                theirs.name,
                theirs.type,
                theirs.banner,
                bool(theirs.is_initial),
            )
        case Bill(), WireBill():
            return (mine.money, mine.type, mine.category, mine.time, mine.remark) == (
                theirs.money,
                theirs.type,
                theirs.category,
                theirs.time,
                theirs.remark,
            )
        case _:
            return False


def upsert(kind: str) -> str:
    """What the server says, over a row that has no unsynced change: those are the caller's to keep out."""
    fields = FIELDS[kind]
    names = ", ".join(("id", *fields))
    marks = ", ".join("?" for _ in range(len(fields) + 3))
    sets = ", ".join(f"{name} = excluded.{name}" for name in (*fields, "version", "seen"))
    return f"""INSERT INTO {kind} ({names}, version, seen, known, synced) VALUES ({marks}, 2, 1)
        ON CONFLICT (id) DO UPDATE SET {sets}, known = 2 WHERE version <= excluded.version AND synced = 1"""


UPSERT = {kind: upsert(kind) for kind in KINDS}


def json_list(items: Iterable[str]) -> str:
    return msgspec.json.encode(list(items)).decode()


VALUES: Mapping[str, Callable[[Any], tuple[Value, ...]]] = {
    "book": book_values,
    "bill": bill_values,
    "image": image_values,
}
