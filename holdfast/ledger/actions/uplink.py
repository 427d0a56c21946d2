"""A message of the uplink is taken: its step runs once, and its first answer is kept and given again."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from holdfast.errors import HoldfastError, InvalidField
from holdfast.ledger import queries as sql
from holdfast.ledger.actions.deed import Deed
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.post import post
from holdfast.ledger.actions.step import Step
from holdfast.ledger.model import By, Shown
from holdfast.store import Transaction

Outcome = Shown | HoldfastError


class Taken(Struct, frozen=True):
    ack: bytes
    outcome: Outcome | None
    """None: the message was taken before."""


def take(
    tx: Transaction,
    by: By,
    message_id: str,
    book_id: str,
    asked: Step[Shown] | HoldfastError,
    answer: Callable[[Outcome], bytes],
) -> Taken:
    """`book_id`: the book that the message says it is about; `answer`: spells the ACK."""
    is_new = tx.execute(sql.TAKE_MESSAGE, author=by.user_id, id=message_id, nothing=b"", now=by.now_ms)
    if not is_new:
        return Taken(tx.one(sql.ACK_OF_MESSAGE, author=by.user_id, id=message_id), None)
    outcome = asked if isinstance(asked, HoldfastError) else _run(tx, by, message_id, book_id, asked)
    ack = answer(outcome)
    tx.execute(sql.ANSWER_MESSAGE, author=by.user_id, id=message_id, ack=ack)
    return Taken(ack, outcome)


def _run(tx: Transaction, by: By, message_id: str, book_id: str, step: Step[Shown]) -> Outcome:
    desk = Desk(tx)
    try:
        with tx.savepoint():
            deed = _of_this_book(step.run(tx, desk, by), book_id)
    except HoldfastError as error:
        if error.status >= 500:
            raise
        return error
    (done,) = post(tx, desk, by, [deed], message_id)
    return done


def _of_this_book(deed: Deed[Shown], book_id: str) -> Deed[Shown]:
    if deed.book_id != book_id:
        raise InvalidField("book_id", "is not the book that this belongs to")
    return deed
