"""What a client asks for, checked as far as it can be without the store: a `Step`, ready for a transaction.

The same for a request, an operation of a batch, and a message of the uplink: one way in for every write.
"""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.ids import IdMaker, XidMaker, is_xid
from holdfast.ledger.actions import Step, bills, books, images
from holdfast.ledger.model import (
    Bill,
    Book,
    ChangedBill,
    ChangedBook,
    Gone,
    Image,
    NewBill,
    NewBook,
    NewImage,
)
from holdfast.ledger.rules import check_bill, check_book, checked_id
from holdfast.settings import Limits


class Orders:
    def __init__(self, limits: Limits, new_id: XidMaker, new_space: IdMaker, images_per_bill: int) -> None:
        self._limits = limits
        self._new_id = new_id
        self._new_space = new_space
        self._images_per_bill = images_per_bill

    def create_book(self, new: NewBook) -> Step[Book]:
        check_book(new, self._limits)
        id_, space = self._id(new.id), self._new_space()
        return Step("book", id_, lambda tx, desk, by: books.create(tx, desk, by, id_, space, new))

    def change_book(self, id_: str, put: ChangedBook) -> Step[Book]:
        check_book(put, self._limits)
        return Step("book", known(id_), lambda tx, desk, by: books.change(tx, desk, by, id_, put))

    def delete_book(self, id_: str) -> Step[Gone]:
        return Step("book", known(id_), lambda tx, desk, by: books.delete(tx, desk, by, id_))

    def create_bill(self, new: NewBill) -> Step[Bill]:
        check_bill(new, self._limits)
        checked_id("book_id", new.book_id)
        id_ = self._id(new.id)
        return Step("bill", id_, lambda tx, desk, by: bills.create(tx, desk, by, id_, new), new)

    def change_bill(self, id_: str, put: ChangedBill) -> Step[Bill]:
        check_bill(put, self._limits)
        return Step("bill", known(id_), lambda tx, desk, by: bills.change(tx, desk, by, id_, put))

    def delete_bill(self, id_: str) -> Step[Gone]:
        return Step("bill", known(id_), lambda tx, desk, by: bills.delete(tx, desk, by, id_))

    def add_image(self, new: NewImage) -> Step[Image]:
        most = self._images_per_bill
        return Step("image", new.id, lambda tx, desk, by: images.add(tx, desk, by, new, most))

    def confirm_image(self, id_: str, bill_id: str) -> Step[Image]:
        return Step(
            "image", known(id_), lambda tx, desk, by: images.confirm(tx, desk, by, id_, known(bill_id))
        )

    def delete_image(self, id_: str) -> Step[Gone]:
        return Step("image", known(id_), lambda tx, desk, by: images.delete(tx, desk, by, id_))

    def _id(self, id_: str | None) -> str:
        return self._new_id() if id_ is None else checked_id("_id", id_)


def known(id_: str) -> str:
    """What is no id is the id of nothing."""
    if not is_xid(id_):
        raise NotFound
    return id_
