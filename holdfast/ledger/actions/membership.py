"""People join a book by its code, leave it, or are removed from it."""

from __future__ import annotations

import secrets

from msgspec import Struct
from msgspec.structs import replace

from holdfast import feed
from holdfast.errors import Forbidden, NotFound
from holdfast.feed import Change, Space
from holdfast.ledger import queries as sql
from holdfast.ledger.actions import books
from holdfast.ledger.actions.deed import Deed, Say
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.revisions import changed
from holdfast.ledger.errors import BookFull, CreatorStays, UnknownCode
from holdfast.ledger.model import BOOK, Book, By, Gone, StoredBook
from holdfast.ledger.rules import next_upd_ms
from holdfast.store import Transaction

CODE_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""None that are taken for another (0 O, 1 I)."""
CODE_LENGTH = 8


class Code(Struct, frozen=True):
    code: str
    expires_ms: int


def share(tx: Transaction, by: By, id_: str, lasts_ms: int) -> Code:
    """The code that is active, or a new one."""
    space, _ = books.mine(tx, Desk(tx), by, id_)
    active = tx.row(sql.CODE, space=space.key)
    if active is not None:
        if active[1] > by.now_ms:
            return Code(*active)
        tx.execute(sql.DROP_CODE, space=space.key)
    made = Code(_new_code(), by.now_ms + lasts_ms)
    while not tx.execute(sql.ADD_CODE, code=made.code, space=space.key, expires=made.expires_ms):
        made = Code(_new_code(), made.expires_ms)
    return made


def _new_code() -> str:
    return "".join([secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH)])


def revoke(tx: Transaction, by: By, id_: str) -> None:
    """Nobody joins by the active code any more."""
    space, _ = books.mine(tx, Desk(tx), by, id_)
    tx.execute(sql.DROP_CODE, space=space.key)


def join(tx: Transaction, desk: Desk, by: By, code: str, most: int) -> Deed[Book]:
    """`most`: members that a book can have. Whoever is in already is answered the book."""
    key = tx.row(sql.SPACE_OF_CODE, code=code.strip().upper(), now=by.now_ms)
    if key is None:
        raise UnknownCode
    space = desk.any_book(key)
    # once more, under the lock: it may have been revoked, and the book deleted, in between
    if tx.row(sql.SPACE_OF_CODE, code=code.strip().upper(), now=by.now_ms) != key or not desk.is_open(space):
        raise UnknownCode
    stored = tx.one(sql.BOOK, id=desk.id_of(space))
    members = desk.members(space)
    if by.user_id in members:
        return Deed(space=key, book_id=stored.id, kind=BOOK, result=stored.shown(members))
    if len(members) >= most:
        raise BookFull
    change, book = _with_members(tx, by, stored, sorted((*members, by.user_id)))
    return Deed(
        space=key,
        book_id=stored.id,
        kind=BOOK,
        result=book,
        changes=(change,),
        join=(by.user_id,),
        members=(*members, by.user_id),
        says=(
            Say("ADD_BOOK", (by.user_id,), book, own=False),
            Say("UPDATE_BOOK", members, book, own=False),
        ),
    )


def leave(tx: Transaction, desk: Desk, by: By, id_: str, who: int) -> Deed[Book | Gone]:
    """A member leaves, or the creator removes one: then the code that he may know is revoked too."""
    space = desk.any_book(tx.row(sql.SPACE_OF_BOOK, id=id_))
    stored = tx.one(sql.BOOK, id=id_)
    if _is_out_already(tx, desk, by, space, who):
        there = Gone(id=id_) if who == by.user_id else stored.shown(desk.members(space))
        return Deed(space=space.key, book_id=id_, kind=BOOK, result=there)
    if who == stored.creator and who == by.user_id:
        raise CreatorStays
    if by.user_id not in (who, stored.creator):
        raise Forbidden
    staying = [member for member in desk.members(space) if member != who]
    if who != by.user_id:
        tx.execute(sql.DROP_CODE, space=space.key)
    change, book = _with_members(tx, by, stored, staying)
    others = tuple([member for member in staying if member != by.user_id])
    return Deed(
        space=space.key,
        book_id=id_,
        kind=BOOK,
        result=Gone(id=id_) if who == by.user_id else book,
        changes=(change,),
        leave=(who,),
        members=tuple(staying),
        says=(
            Say("DELETE_BOOK", (who,), id_, leaving=True, own=False),
            Say("UPDATE_BOOK", others, book, own=who != by.user_id),
        ),
    )


def _is_out_already(tx: Transaction, desk: Desk, by: By, space: Space, who: int) -> bool:
    """Sent twice, or he was quicker. Nobody is told anything of a book that he is not in, but that he is not in it."""
    if who == by.user_id:
        if desk.is_open(space) and who in desk.members(space):
            return False
        if feed.was_ever_inside(tx, who, space.key):
            return True
        raise NotFound
    desk.book(by, space.key)
    if who in desk.members(space):
        return False
    if tx.one(sql.BOOK, id=desk.id_of(space)).creator != by.user_id:
        raise Forbidden
    if feed.was_ever_inside(tx, who, space.key):
        return True
    raise NotFound


def _with_members(tx: Transaction, by: By, stored: StoredBook, members: list[int]) -> tuple[Change, Book]:
    upd_ms = next_upd_ms(by.now_ms, stored.upd_ms)
    tx.execute(sql.TOUCH_BOOK, id=stored.id, upd=upd_ms)
    return changed(BOOK, stored.id, stored.upd_ms, upd_ms), replace(stored, upd_ms=upd_ms).shown(members)
