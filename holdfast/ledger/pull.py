"""What a client pulls: one page of its feed with the entities in it, out of one snapshot.

Parents first: a page carries the present book of every living item (and the bill of every image) whose own place lies
beyond its end, so that a client which applies books, then bills, then images never meets a child without its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import Raw, Struct, field

from holdfast import feed
from holdfast.feed import Ask, Entry, Page, Parent
from holdfast.ledger import queries as sql
from holdfast.ledger.model import (
    BILL,
    BOOK,
    IMAGE,
    Action,
    Bill,
    BillRow,
    Book,
    Gone,
    Image,
    StoredBook,
    StoredImage,
    Version,
    bill_as_json,
)
from holdfast.store import Snapshot


class Changes(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of what is new. Apply books, then bills, then images; then keep `next_since` and `epoch`. Of what was
    deleted, or may not be seen any more, there are only `_id`, `action` and `version`."""

    books: list[Book]
    bills: list[Bill]
    images: list[Image]
    server_time: Version
    has_more: bool
    next_since: Version
    epoch: str
    reset: bool = False


class _Rows(Struct, frozen=True):
    """The stored rows of what is on a page."""

    books: Mapping[str, StoredBook] = field(default_factory=dict)
    bills: Mapping[str, BillRow] = field(default_factory=dict)
    images: Mapping[str, StoredImage] = field(default_factory=dict)


def nothing_new(view: Snapshot, ask: Ask, now_ms: int, keep_ms: int) -> Changes | None:
    """The answer for a client that is up to date, at the cost of one row; None when there may be more to say."""
    page = feed.page_if_current(view, ask, now_ms, keep_ms)
    return None if page is None else _answer(page, [], [], [])


def changes(view: Snapshot, ask: Ask, now_ms: int, keep_ms: int) -> Changes:
    page = feed.page(view, ask, now_ms, keep_ms)
    entries = page.entries
    if not entries:
        return _answer(page, [], [], [])
    rows = _rows(view, entries)
    ids = sql.book_ids(view, {entry.space for entry in entries if entry.live})
    if page.has_more:
        ahead = feed.parents_ahead(view, ask.owner, entries[-1].version, _parents(entries, rows, ids))
        if ahead:
            entries = [*entries, *ahead]
            rows = _rows(view, entries)
    return _shown(view, page, entries, rows, ids)


def _rows(view: Snapshot, entries: Iterable[Entry]) -> _Rows:
    wanted: dict[int, list[str]] = {BOOK: [], BILL: [], IMAGE: []}
    for entry in entries:
        if entry.live:
            wanted[entry.kind].append(entry.entity)
    return _Rows(
        {row.id: row for row in view.rows(sql.BOOKS, ids=wanted[BOOK])} if wanted[BOOK] else {},
        {row[0]: row for row in view.rows(sql.BILL_ROWS, ids=wanted[BILL])} if wanted[BILL] else {},
        {row.id: row for row in view.rows(sql.IMAGES, ids=wanted[IMAGE])} if wanted[IMAGE] else {},
    )


def _parents(entries: Iterable[Entry], rows: _Rows, ids: Mapping[int, str]) -> set[Parent]:
    spaces = {entry.space for entry in entries if entry.live and entry.kind != BOOK}
    parents = {Parent(space, BOOK, ids[space]) for space in spaces}
    for image in rows.images.values():
        parents.add(Parent(image.space, BILL, image.bill))
    return parents


def _shown(
    view: Snapshot, page: Page, entries: Sequence[Entry], rows: _Rows, ids: Mapping[int, str]
) -> Changes:
    books: list[Book] = []
    bills: list[Bill] = []
    images: list[Image] = []
    members = feed.members_of(view, {row.space for row in rows.books.values()}) if rows.books else {}
    for entry in entries:
        version = entry.version
        action: Action = "delete" if not entry.live else "add" if entry.first else "update"
        if entry.kind == BILL:
            bills.append(
                cast("Bill", Raw(bill_as_json(rows.bills[entry.entity], ids[entry.space], action, version)))
                if entry.live
                else cast("Bill", Gone(id=entry.entity, action=action, version=version))
            )
        elif entry.kind == BOOK:
            book = rows.books[entry.entity] if entry.live else None
            books.append(
                book.shown(members[book.space], action=action, version=version)
                if book is not None
                else cast("Book", Gone(id=entry.entity, action=action, version=version))
            )
        else:
            images.append(
                rows.images[entry.entity].shown(ids[entry.space], action=action, version=version)
                if entry.live
                else cast("Image", Gone(id=entry.entity, action=action, version=version))
            )
    return _answer(page, books, bills, images)


def _answer(page: Page, books: list[Book], bills: list[Bill], images: list[Image]) -> Changes:
    return Changes(
        books=books,
        bills=bills,
        images=images,
        server_time=page.head,
        has_more=page.has_more,
        next_since=page.next_since,
        epoch=page.epoch,
        reset=page.reset,
    )
