"""A book is made, changed, deleted. Whoever made it, and nobody else, changes and deletes it."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast import feed
from holdfast.errors import InvalidField, NotFound, VersionConflict
from holdfast.feed import Space
from holdfast.ledger import queries as sql
from holdfast.ledger.actions.deed import Deed, Say
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.revisions import added, changed
from holdfast.ledger.errors import Deleted, ExistsMine, IdConflict
from holdfast.ledger.model import BOOK, Book, By, ChangedBook, Gone, NewBook, StoredBook
from holdfast.ledger.rules import next_upd_ms, require_creator, same_book
from holdfast.store import Transaction


def create(tx: Transaction, desk: Desk, by: By, id_: str, space_key: int, new: NewBook) -> Deed[Book]:
    """`space_key`: its number in the feed, never used before."""
    is_new = tx.execute(
        sql.ADD_BOOK,
        id=id_,
        space=space_key,
        creator=by.user_id,
        name=new.name,
        type=new.type,
        banner=new.banner,
        is_initial=bool(new.is_initial),
        now=by.now_ms,
    )
    stored = tx.one(sql.BOOK, id=id_)
    if not is_new:
        return _made_before(tx, desk, by, stored, new)
    desk.opened(feed.open_space(tx, space_key), by.user_id)
    return Deed(
        space=space_key,
        book_id=id_,
        kind=BOOK,
        result=(book := stored.shown([by.user_id])),
        changes=(added(BOOK, id_, stored.upd_ms),),
        join=(by.user_id,),
        says=(Say("ADD_BOOK", (), book),),
    )


def _made_before(tx: Transaction, desk: Desk, by: By, stored: StoredBook, new: NewBook) -> Deed[Book]:
    if stored.creator != by.user_id:
        raise IdConflict
    if stored.deleted_ms is not None:
        raise Deleted
    members = desk.members(desk.any_book(stored.space))
    if not same_book(stored, new):
        raise ExistsMine(data=stored.shown(members))
    return _as_it_is(stored, members)


def change(tx: Transaction, desk: Desk, by: By, id_: str, put: ChangedBook) -> Deed[Book]:
    space, stored = mine(tx, desk, by, id_)
    if put.id is not None and put.id != id_:
        raise InvalidField("_id", "is not the id in the path")
    members = desk.members(space)
    if same_book(stored, put):
        return _as_it_is(stored, members)
    before = stored.shown(members)
    if put.base_upd_time is not None and put.base_upd_time != before.upd_time:
        raise VersionConflict(data=before)
    upd_ms = next_upd_ms(by.now_ms, stored.upd_ms)
    tx.execute(
        sql.CHANGE_BOOK,
        id=id_,
        name=put.name,
        type=put.type,
        banner=put.banner,
        is_initial=bool(put.is_initial),
        upd=upd_ms,
    )
    book = replace(
        stored,
        name=put.name,
        type=put.type,
        banner=put.banner,
        is_initial=bool(put.is_initial),
        upd_ms=upd_ms,
    ).shown(members)
    return Deed(
        space=space.key,
        book_id=id_,
        kind=BOOK,
        result=book,
        changes=(changed(BOOK, id_, stored.upd_ms, upd_ms),),
        says=(Say("UPDATE_BOOK", desk.others(by, space), book),),
    )


def delete(tx: Transaction, desk: Desk, by: By, id_: str) -> Deed[Gone]:
    """Its bills and images go with it. Only links are touched; a sweep lets go of the rows and the files."""
    try:
        space, stored = mine(tx, desk, by, id_)
    except Deleted:
        key = tx.one(sql.SPACE_OF_BOOK, id=id_)
        return Deed(space=key, book_id=id_, kind=BOOK, result=Gone(id=id_))
    tx.execute(sql.DELETE_BOOK, id=id_, now=by.now_ms, upd=next_upd_ms(by.now_ms, stored.upd_ms))
    tx.execute(sql.DROP_CODE, space=space.key)
    desk.closed(space)
    return Deed(
        space=space.key,
        book_id=id_,
        kind=BOOK,
        result=Gone(id=id_),
        close=True,
        members=(),
        says=(Say("DELETE_BOOK", desk.others(by, space), id_, leaving=True),),
    )


def mine(tx: Transaction, desk: Desk, by: By, id_: str) -> tuple[Space, StoredBook]:
    """The book under its lock, for its creator: a member is refused, and nobody else is told that it is there."""
    key = tx.row(sql.SPACE_OF_BOOK, id=id_)
    if key is None:
        raise NotFound
    try:
        space = desk.book(by, key)
    except Deleted:
        if tx.one(sql.BOOK, id=id_).creator != by.user_id:
            raise NotFound from None
        raise
    stored = tx.one(sql.BOOK, id=id_)
    require_creator(by.user_id, stored.creator)
    return space, stored


def _as_it_is(stored: StoredBook, members: tuple[int, ...]) -> Deed[Book]:
    return Deed(space=stored.space, book_id=stored.id, kind=BOOK, result=stored.shown(members))
