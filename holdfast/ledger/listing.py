"""The bills of a book, newest first by their own time, page by page. The cursor says after which bill."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode

from msgspec import Struct

from holdfast import feed
from holdfast.errors import InvalidField, NotFound
from holdfast.ids import is_xid
from holdfast.ledger import queries as sql
from holdfast.ledger.model import Bill
from holdfast.store import Snapshot

FIRST, LAST = -(2**62), 2**62


class Listing(Struct, frozen=True, kw_only=True):
    """What is asked for: bills whose time lies from `first` to `last`, both included."""

    book_id: str
    limit: int
    first: int = FIRST
    last: int = LAST
    after: tuple[int, str] | None = None


class BillPage(Struct, frozen=True):
    bills: list[Bill]
    has_more: bool
    next_cursor: str | None


def bills(view: Snapshot, user_id: int, asked: Listing) -> BillPage:
    """For a member; nobody else is told that there is a book."""
    space = view.row(sql.SPACE_OF_BOOK, id=asked.book_id)
    if space is None or not feed.is_inside(view, user_id, space):
        raise NotFound
    limit, first, last = asked.limit + 1, asked.first, asked.last
    if asked.after is None:
        found = view.rows(sql.FIRST_LISTED, space=space, first=first, last=last, limit=limit)
    else:
        time_ms, id_ = asked.after
        found = view.rows(
            sql.NEXT_LISTED, space=space, first=first, last=last, limit=limit, time_ms=time_ms, id=id_
        )
    has_more = len(found) > asked.limit
    page = found[: asked.limit]
    shown = sql.shown_bills(view, [id_ for _, id_ in page], asked.book_id)
    return BillPage(shown, has_more, cursor(*page[-1]) if has_more else None)


def cursor(time_ms: int, id_: str) -> str:
    return urlsafe_b64encode(f"{time_ms}.{id_}".encode()).decode().rstrip("=")


def place(cursor: str) -> tuple[int, str]:
    """Where a cursor of ours points to."""
    try:
        text = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)).decode("ascii")
        time_ms, _, id_ = text.partition(".")
        found = int(time_ms), id_
    except (ValueError, binascii.Error):
        raise InvalidField("cursor", "must be the next_cursor of an earlier page") from None
    if not is_xid(id_) or not FIRST <= found[0] <= LAST:
        raise InvalidField("cursor", "must be the next_cursor of an earlier page")
    return found
