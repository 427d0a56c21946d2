"""An image is added to a bill, or deleted. It follows its bill: whoever made the bill may."""

from __future__ import annotations

from holdfast import blobs
from holdfast.errors import NotFound
from holdfast.feed import Change
from holdfast.ledger import queries as sql
from holdfast.ledger.actions import bills
from holdfast.ledger.actions.deed import Deed, Say
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.revisions import added, changed, removed
from holdfast.ledger.errors import BillFull, Deleted, ExistsMine, IdConflict
from holdfast.ledger.model import BILL, IMAGE, By, Gone, Image, NewImage, StoredBill, StoredImage
from holdfast.ledger.rules import next_upd_ms, require_creator
from holdfast.store import Transaction


def add(tx: Transaction, desk: Desk, by: By, new: NewImage, most: int) -> Deed[Image]:
    """`most`: images that a bill can have. The bill that it belongs to is another revision from now on."""
    space, bill = bills.mine(tx, desk, by, new.bill_id)
    book_id = desk.id_of(space)
    there = bill.images.split()
    is_new = tx.execute(
        sql.ADD_IMAGE,
        id=new.id,
        space=space.key,
        bill=bill.id,
        creator=by.user_id,
        sha256=new.sha256,
        md5=new.md5,
        size=new.size,
        mime=new.mime,
        ext=new.ext,
        now=by.now_ms,
    )
    stored = tx.one(sql.IMAGE, id=new.id)
    if not is_new:
        return _added_before(tx, by, stored, new, book_id)
    if len(there) >= most:
        raise BillFull
    image = stored.shown(book_id)
    return Deed(
        space=space.key,
        book_id=book_id,
        kind=IMAGE,
        result=image,
        changes=(_now_with(tx, by, bill, [*there, new.id]), added(IMAGE, new.id, stored.upd_ms)),
        root=1,
        files={new.sha256: 1},
        holder=new.holder,
        says=(Say("IMAGE_UPLOADED", desk.others(by, space), image),),
    )


def _added_before(tx: Transaction, by: By, stored: StoredImage, new: NewImage, book_id: str) -> Deed[Image]:
    if stored.creator != by.user_id:
        raise IdConflict
    if stored.deleted_ms is not None:
        raise Deleted
    if stored.bill != new.bill_id:
        raise IdConflict
    image = stored.shown(book_id)
    if stored.sha256 != new.sha256:
        raise ExistsMine(data=image)
    blobs.unclaim(tx, new.sha256, new.holder)
    return Deed(space=stored.space, book_id=book_id, kind=IMAGE, result=image)


def confirm(tx: Transaction, desk: Desk, by: By, id_: str, bill_id: str) -> Deed[Image]:
    """The uplink says that an image, which was uploaded before, is there: passed on as it is."""
    space, bill = bills.mine(tx, desk, by, bill_id)
    image = tx.row(sql.IMAGE, id=id_)
    if image is None or image.bill != bill.id:
        raise NotFound("this image is not here, or not this bill's: upload it first")
    if image.deleted_ms is not None:
        raise Deleted
    book_id = desk.id_of(space)
    shown = image.shown(book_id)
    said = Say("IMAGE_UPLOADED", desk.others(by, space), shown, own=False, again=True)
    return Deed(space=space.key, book_id=book_id, kind=IMAGE, result=shown, says=(said,))


def delete(tx: Transaction, desk: Desk, by: By, id_: str) -> Deed[Gone]:
    try:
        space = desk.book(by, tx.row(sql.SPACE_OF_IMAGE, id=id_))
    except Deleted:
        return _deleted_before(tx, by, tx.one(sql.IMAGE, id=id_))
    image = tx.one(sql.IMAGE, id=id_)
    if image.deleted_ms is not None:
        return _deleted_before(tx, by, image)
    bill = tx.one(sql.BILL, id=image.bill)
    require_creator(by.user_id, bill.creator)
    tx.execute(sql.DELETE_IMAGES, ids=[id_], now=by.now_ms)
    left = [other for other in bill.images.split() if other != id_]
    return Deed(
        space=space.key,
        book_id=desk.id_of(space),
        kind=IMAGE,
        result=Gone(id=id_),
        changes=(removed(IMAGE, id_, image.upd_ms), _now_with(tx, by, bill, left)),
        files={image.sha256: -1},
        says=(Say("IMAGE_DELETED", desk.others(by, space), id_),),
    )


def _deleted_before(tx: Transaction, by: By, image: StoredImage) -> Deed[Gone]:
    if image.creator != by.user_id:
        raise Deleted
    book_id = tx.row(sql.ID_OF_BOOK, space=image.space) or ""
    return Deed(space=image.space, book_id=book_id, kind=IMAGE, result=Gone(id=image.id))


def _now_with(tx: Transaction, by: By, bill: StoredBill, images: list[str]) -> Change:
    upd_ms = next_upd_ms(by.now_ms, bill.upd_ms)
    tx.execute(sql.SET_IMAGES, id=bill.id, images=" ".join(images), upd=upd_ms)
    return changed(BILL, bill.id, bill.upd_ms, upd_ms)
