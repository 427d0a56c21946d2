"""The SQL of this room, by the table it is about, and the reads made of it.

Locks: a book's space (the feed's) before any row of the book, its bills and images; then files; then feeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast import feed
from holdfast.ledger.model import Bill, BillRow, Book, StoredBill, StoredBook, StoredImage
from holdfast.store import Query, Snapshot, Statement

# ledger_book
_BOOK = "id, space, creator, name, type, banner, is_initial, crt_ms, upd_ms, deleted_ms"
SPACE_OF_BOOK = Query(int, "SELECT space FROM ledger_book WHERE id = :id")
SPACES_OF_BOOKS = Query(tuple[str, int], "SELECT id, space FROM ledger_book WHERE id = ANY(:ids)")
BOOKS_OF_SPACES = Query(tuple[int, str], "SELECT space, id FROM ledger_book WHERE space = ANY(:spaces)")
BOOK = Query(StoredBook, f"SELECT {_BOOK} FROM ledger_book WHERE id = :id")
BOOKS = Query(StoredBook, f"SELECT {_BOOK} FROM ledger_book WHERE id = ANY(:ids)")
BOOKS_BY_SPACE = Query(
    StoredBook, f"SELECT {_BOOK} FROM ledger_book WHERE space = ANY(:spaces) ORDER BY crt_ms, id"
)
ID_OF_BOOK = Query(str, "SELECT id FROM ledger_book WHERE space = :space")
ADD_BOOK = Statement(
    "INSERT INTO ledger_book (id, space, creator, name, type, banner, is_initial, crt_ms, upd_ms, emptied)"
    " VALUES (:id, :space, :creator, :name, :type, :banner, :is_initial, :now, :now, FALSE)"
    " ON CONFLICT (id) DO NOTHING"
)
CHANGE_BOOK = Statement(
    "UPDATE ledger_book SET name = :name, type = :type, banner = :banner, is_initial = :is_initial,"
    " upd_ms = :upd WHERE id = :id"
)
TOUCH_BOOK = Statement("UPDATE ledger_book SET upd_ms = :upd WHERE id = :id")
DELETE_BOOK = Statement("UPDATE ledger_book SET deleted_ms = :now, upd_ms = :upd WHERE id = :id")

# ledger_bill
_BILL = "id, space, creator, money, type, category, time, remark, images, crt_ms, upd_ms, deleted_ms"
SPACE_OF_BILL = Query(int, "SELECT space FROM ledger_bill WHERE id = :id")
SPACES_OF_BILLS = Query(tuple[str, int], "SELECT id, space FROM ledger_bill WHERE id = ANY(:ids)")
BILL = Query(StoredBill, f"SELECT {_BILL} FROM ledger_bill WHERE id = :id")
BILLS = Query(StoredBill, f"SELECT {_BILL} FROM ledger_bill WHERE id = ANY(:ids)")
BILL_ROWS: Query[BillRow] = Query(
    tuple[str, int, int, str, int, str, str, str | None, str, int, int, int | None],
    f"SELECT {_BILL} FROM ledger_bill WHERE id = ANY(:ids)",
)
ADD_BILL = Statement(
    "INSERT INTO ledger_bill (id, space, creator, money, type, category, time, time_ms, remark, images, crt_ms,"
    " upd_ms) VALUES (:id, :space, :creator, :money, :type, :category, :time, :time_ms, :remark, '', :now, :now)"
    " ON CONFLICT (id) DO NOTHING"
)
THERE = Query(str, "SELECT id FROM ledger_bill WHERE id = ANY(:ids)")
# `rows` is JSON, [[id, space, creator, money, type, category, time, time_ms, remark, now], …]: many rows, one statement
ADD_BILLS = Statement(
    """
    INSERT INTO ledger_bill (id, space, creator, money, type, category, time, time_ms, remark, images, crt_ms, upd_ms)
    SELECT r.value ->> 0, CAST(r.value ->> 1 AS BIGINT), CAST(r.value ->> 2 AS BIGINT), r.value ->> 3,
        CAST(r.value ->> 4 AS BIGINT), r.value ->> 5, r.value ->> 6, CAST(r.value ->> 7 AS BIGINT), r.value ->> 8, '',
        CAST(r.value ->> 9 AS BIGINT), CAST(r.value ->> 9 AS BIGINT)
    --postgresql: FROM jsonb_array_elements(CAST(:rows AS jsonb)) AS r(value)
    --sqlite: FROM json_each(:rows) AS r
    WHERE TRUE
    ON CONFLICT (id) DO NOTHING
    """
)
CHANGE_BILL = Statement(
    "UPDATE ledger_bill SET money = :money, type = :type, category = :category, time = :time,"
    " time_ms = :time_ms, remark = :remark, upd_ms = :upd WHERE id = :id"
)
SET_IMAGES = Statement("UPDATE ledger_bill SET images = :images, upd_ms = :upd WHERE id = :id")
DELETE_BILL = Statement("UPDATE ledger_bill SET deleted_ms = :now, upd_ms = :upd, images = '' WHERE id = :id")
FIRST_LISTED = Query(
    tuple[int, str],
    """
    SELECT time_ms, id FROM ledger_bill
    WHERE space = :space AND deleted_ms IS NULL AND time_ms >= :first AND time_ms <= :last
    ORDER BY time_ms DESC, id DESC LIMIT :limit
    """,
)
NEXT_LISTED = Query(
    tuple[int, str],
    """
    SELECT time_ms, id FROM ledger_bill
    WHERE space = :space AND deleted_ms IS NULL AND time_ms >= :first AND time_ms <= :last
        AND (time_ms, id) < (:time_ms, :id)
    ORDER BY time_ms DESC, id DESC LIMIT :limit
    """,
)

# ledger_image
_IMAGE = "id, space, bill, creator, sha256, md5, size, mime, ext, upd_ms, deleted_ms"
SPACE_OF_IMAGE = Query(int, "SELECT space FROM ledger_image WHERE id = :id")
SPACES_OF_IMAGES = Query(tuple[str, int], "SELECT id, space FROM ledger_image WHERE id = ANY(:ids)")
IMAGE = Query(StoredImage, f"SELECT {_IMAGE} FROM ledger_image WHERE id = :id")
IMAGES = Query(StoredImage, f"SELECT {_IMAGE} FROM ledger_image WHERE id = ANY(:ids)")
ADD_IMAGE = Statement(
    "INSERT INTO ledger_image (id, space, bill, creator, sha256, md5, size, mime, ext, upd_ms)"
    " VALUES (:id, :space, :bill, :creator, :sha256, :md5, :size, :mime, :ext, :now)"
    " ON CONFLICT (id) DO NOTHING"
)
DELETE_IMAGES = Statement("UPDATE ledger_image SET deleted_ms = :now WHERE id = ANY(:ids)")

# ledger_code
CODE = Query(tuple[str, int], "SELECT code, expires_ms FROM ledger_code WHERE space = :space")
SPACE_OF_CODE = Query(int, "SELECT space FROM ledger_code WHERE code = :code AND expires_ms > :now")
ADD_CODE = Statement(
    "INSERT INTO ledger_code (code, space, expires_ms) VALUES (:code, :space, :expires) ON CONFLICT DO NOTHING"
)
DROP_CODE = Statement("DELETE FROM ledger_code WHERE space = :space")

# ledger_uplink
TAKE_MESSAGE = Statement(
    "INSERT INTO ledger_uplink (author, id, ack, taken_ms) VALUES (:author, :id, :nothing, :now)"
    " ON CONFLICT (author, id) DO NOTHING"
)
ACK_OF_MESSAGE = Query(bytes, "SELECT ack FROM ledger_uplink WHERE author = :author AND id = :id")
ANSWER_MESSAGE = Statement("UPDATE ledger_uplink SET ack = :ack WHERE author = :author AND id = :id")


def book_ids(view: Snapshot, spaces: Collection[int]) -> dict[int, str]:
    """The id of the book that has each space."""
    return dict(view.rows(BOOKS_OF_SPACES, spaces=list(spaces)))


def with_members(view: Snapshot, books: Iterable[StoredBook]) -> list[Book]:
    found = list(books)
    members = feed.members_of(view, [book.space for book in found])
    return [book.shown(members[book.space]) for book in found]


def my_books(view: Snapshot, user_id: int) -> list[Book]:
    """Those he made and those he joined, oldest first."""
    return with_members(view, view.rows(BOOKS_BY_SPACE, spaces=feed.spaces_of(view, user_id)))


def shown_bills(view: Snapshot, ids: list[str], book_id: str) -> list[Bill]:
    """The bills of one book, in the order of `ids`."""
    rows = {bill.id: bill for bill in view.rows(BILLS, ids=ids)}
    return [rows[id_].shown(book_id) for id_ in ids]
