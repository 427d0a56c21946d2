"""A bill is made, changed, deleted. Members make bills; whoever made one, and nobody else, changes and deletes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from holdfast import feed
from holdfast.errors import HoldfastError, InvalidField, VersionConflict
from holdfast.feed import Space
from holdfast.ledger import queries as sql
from holdfast.ledger.actions.deed import Deed, Say
from holdfast.ledger.actions.desk import Desk, OutOfDate
from holdfast.ledger.actions.revisions import added, changed, removed
from holdfast.ledger.errors import Deleted, ExistsMine, IdConflict
from holdfast.ledger.model import BILL, IMAGE, Bill, By, ChangedBill, Gone, NewBill, StoredBill
from holdfast.ledger.rules import checked_money, moment_ms, next_upd_ms, require_creator, same_bill
from holdfast.store import Transaction

Row = tuple[str, int, int, str, int, str, str, int, str | None, int]

_encode = msgspec.json.encode


def create(tx: Transaction, desk: Desk, by: By, id_: str, new: NewBill) -> Deed[Bill]:
    space = desk.book(by, tx.row(sql.SPACE_OF_BOOK, id=new.book_id))
    money = checked_money(new.money)
    is_new = tx.execute(
        sql.ADD_BILL,
        id=id_,
        space=space.key,
        creator=by.user_id,
        money=money,
        type=new.type,
        category=new.category,
        time=new.time,
        time_ms=moment_ms("time", new.time),
        remark=new.remark,
        now=by.now_ms,
    )
    if not is_new:
        return _made_before(tx, desk, by, space, id_, new)
    return _made(desk, by, space, id_, new, money)


def create_many(
    tx: Transaction, desk: Desk, asked: Sequence[tuple[By, str, NewBill]]
) -> list[Deed[Bill] | HoldfastError]:
    """As `create` for each of them, in a few statements for all. One that is refused has changed nothing."""
    spaces = dict(tx.rows(sql.SPACES_OF_BOOKS, ids=sorted({new.book_id for _, _, new in asked})))
    there = set(tx.rows(sql.THERE, ids=[id_ for _, id_, _ in asked]))
    outcomes: list[Deed[Bill] | HoldfastError | None] = [None] * len(asked)
    rows: list[Row] = []
    for number, (by, id_, new) in enumerate(asked):
        try:
            space, money = desk.book(by, spaces.get(new.book_id)), checked_money(new.money)
        except HoldfastError as error:
            outcomes[number] = _told(error)
            continue
        if id_ in there:
            continue
        there.add(id_)
        rows.append(
            (id_, space.key, by.user_id, money, new.type, new.category, new.time, moment_ms("time", new.time),
             new.remark, by.now_ms)
        )  # fmt: skip
        outcomes[number] = _made(desk, by, space, id_, new, money)
    if rows and tx.execute(sql.ADD_BILLS, rows=_encode(rows).decode()) != len(rows):
        raise OutOfDate  # somebody else made one of them since we looked
    return [
        outcome if outcome is not None else _again(tx, desk, spaces, *asked[number])
        for number, outcome in enumerate(outcomes)
    ]


def _again(
    tx: Transaction, desk: Desk, spaces: Mapping[str, int], by: By, id_: str, new: NewBill
) -> Deed[Bill] | HoldfastError:
    try:
        return _made_before(tx, desk, by, desk.book(by, spaces.get(new.book_id)), id_, new)
    except HoldfastError as error:
        return _told(error)


def _told(error: HoldfastError) -> HoldfastError:
    """A refusal is whoever asked's alone; trouble of ours is everybody's."""
    if error.status >= 500:
        raise error
    return error


def _made(desk: Desk, by: By, space: Space, id_: str, new: NewBill, money: str) -> Deed[Bill]:
    bill = StoredBill(
        id_, space.key, by.user_id, money, new.type, new.category, new.time, new.remark, "",
        by.now_ms, by.now_ms, None,
    ).shown(new.book_id)  # fmt: skip
    return Deed(
        space=space.key,
        book_id=new.book_id,
        kind=BILL,
        result=bill,
        changes=(added(BILL, id_, by.now_ms),),
        says=(Say("ADD_BILL", desk.others(by, space), bill),),
    )


def _made_before(tx: Transaction, desk: Desk, by: By, space: Space, id_: str, new: NewBill) -> Deed[Bill]:
    stored = tx.one(sql.BILL, id=id_)
    if stored.creator != by.user_id:
        raise IdConflict
    if stored.deleted_ms is not None:
        raise Deleted
    if stored.space != space.key:
        raise _mine_elsewhere(tx, by, stored)
    bill = stored.shown(new.book_id)
    if not same_bill(stored, new):
        raise ExistsMine(data=bill)
    return Deed(space=space.key, book_id=new.book_id, kind=BILL, result=bill)


def _mine_elsewhere(tx: Transaction, by: By, stored: StoredBill) -> Exception:
    """My bill in another book; it is shown only while I am a member there."""
    if not feed.is_inside(tx, by.user_id, stored.space):
        return IdConflict()
    return ExistsMine(data=stored.shown(tx.one(sql.ID_OF_BOOK, space=stored.space)))


def change(tx: Transaction, desk: Desk, by: By, id_: str, put: ChangedBill) -> Deed[Bill]:
    space, stored = mine(tx, desk, by, id_)
    book_id = desk.id_of(space)
    if put.id is not None and put.id != id_:
        raise InvalidField("_id", "is not the id in the path")
    if put.book_id is not None and put.book_id != book_id:
        raise InvalidField("book_id", "a bill stays in its book; delete it and make another one")
    before = stored.shown(book_id)
    if same_bill(stored, put):
        return Deed(space=space.key, book_id=book_id, kind=BILL, result=before)
    if put.base_upd_time is not None and put.base_upd_time != before.upd_time:
        raise VersionConflict(data=before)
    money, upd_ms = checked_money(put.money), next_upd_ms(by.now_ms, stored.upd_ms)
    tx.execute(
        sql.CHANGE_BILL,
        id=id_,
        money=money,
        type=put.type,
        category=put.category,
        time=put.time,
        time_ms=moment_ms("time", put.time),
        remark=put.remark,
        upd=upd_ms,
    )
    bill = replace(
        stored,
        money=money,
        type=put.type,
        category=put.category,
        time=put.time,
        remark=put.remark,
        upd_ms=upd_ms,
    ).shown(book_id)
    return Deed(
        space=space.key,
        book_id=book_id,
        kind=BILL,
        result=bill,
        changes=(changed(BILL, id_, stored.upd_ms, upd_ms),),
        says=(Say("UPDATE_BILL", desk.others(by, space), bill),),
    )


def delete(tx: Transaction, desk: Desk, by: By, id_: str) -> Deed[Gone]:
    """Its images go with it, and their files when nobody else has them."""
    try:
        space, stored = mine(tx, desk, by, id_)
    except Deleted:
        return _deleted_before(tx, by, id_)
    images = tx.rows(sql.IMAGES, ids=stored.images.split())
    tx.execute(sql.DELETE_BILL, id=id_, now=by.now_ms, upd=next_upd_ms(by.now_ms, stored.upd_ms))
    if images:
        tx.execute(sql.DELETE_IMAGES, ids=[image.id for image in images], now=by.now_ms)
    files: dict[str, int] = {}
    for image in images:
        files[image.sha256] = files.get(image.sha256, 0) - 1
    return Deed(
        space=space.key,
        book_id=desk.id_of(space),
        kind=BILL,
        result=Gone(id=id_),
        changes=(
            removed(BILL, id_, stored.upd_ms),
            *(removed(IMAGE, image.id, image.upd_ms) for image in images),
        ),
        files=files,
        says=(Say("DELETE_BILL", desk.others(by, space), id_),),
    )


def _deleted_before(tx: Transaction, by: By, id_: str) -> Deed[Gone]:
    stored = tx.one(sql.BILL, id=id_)
    if stored.creator != by.user_id:
        raise Deleted
    book_id = tx.row(sql.ID_OF_BOOK, space=stored.space) or ""
    return Deed(space=stored.space, book_id=book_id, kind=BILL, result=Gone(id=id_))


def mine(tx: Transaction, desk: Desk, by: By, id_: str) -> tuple[Space, StoredBill]:
    """The bill, its book under its lock, for its creator: another member is refused, and nobody else is told."""
    space = desk.book(by, tx.row(sql.SPACE_OF_BILL, id=id_))
    stored = tx.one(sql.BILL, id=id_)
    if stored.deleted_ms is not None:
        raise Deleted
    require_creator(by.user_id, stored.creator)
    return space, stored
