"""What can go wrong with books, bills and images, beyond what can go wrong with anything."""

from __future__ import annotations

from holdfast.errors import Conflict, Forbidden, NotFound


class CreatorStays(Forbidden):
    """The creator of a book cannot leave it; delete the book instead."""

    status, number, reason = 403, 10, "creator_stays"


class Deleted(NotFound):
    """This was deleted."""

    status, number, reason = 404, 10, "deleted"


class UnknownCode(NotFound):
    """This code is not known, or it has expired; ask the book's creator for a new one."""

    status, number, reason = 404, 11, "unknown_code"


class ExistsMine(Conflict):
    """You made something with this id already, with other content; change it with PUT."""

    status, number, reason = 409, 10, "exists_mine"


class IdConflict(Conflict):
    """This id is taken; make a new one."""

    status, number, reason = 409, 11, "id_conflict"


class BookFull(Conflict):
    """This book has as many members as a book can have."""

    status, number, reason = 409, 12, "book_full"


class BillFull(Conflict):
    """This bill has as many images as a bill can have."""

    status, number, reason = 409, 13, "bill_full"
