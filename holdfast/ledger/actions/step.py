"""One operation that somebody asked for, ready for a transaction: from a request, a batch or the uplink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from holdfast.ledger.actions.deed import Deed
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.model import By, Kind, NewBill, Shown
from holdfast.store import Transaction

S = TypeVar("S", bound=Shown, covariant=True)


class Step(Struct, Generic[S], frozen=True):
    entity: Kind
    id: str
    run: Callable[[Transaction, Desk, By], Deed[S]]
    new: NewBill | None = None
    """What a new bill is to be: many of them are made in one go."""

    @property
    def book_id(self) -> str | None:
        """Of a new bill."""
        return self.new.book_id if self.new is not None else None
