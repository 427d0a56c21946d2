"""Many operations in one transaction, each undone alone when it is refused: how an outbox drains fast."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from holdfast import feed
from holdfast.errors import HoldfastError
from holdfast.ledger import queries as sql
from holdfast.ledger.actions.deed import Deed
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.post import post
from holdfast.ledger.actions.step import Step
from holdfast.ledger.model import By, Shown
from holdfast.store import Query, Transaction


class Done(Struct, frozen=True):
    entity: Shown


Outcome = Done | HoldfastError


def run(tx: Transaction, by: By, asked: Sequence[Step[Shown] | HoldfastError]) -> list[Outcome]:
    """What each step came to, in their order (for one that the door could not understand: its error).

    Raises `OutOfDate` when it has to begin anew (PostgreSQL alone).
    """
    steps = [step for step in asked if isinstance(step, Step)]
    desk = Desk(tx, feed.lock_spaces(tx, _spaces(tx, steps)))
    outcomes = [_attempt(tx, desk, by, step) if isinstance(step, Step) else step for step in asked]
    done = iter(post(tx, desk, by, [outcome for outcome in outcomes if isinstance(outcome, Deed)]))
    return [Done(next(done)) if isinstance(outcome, Deed) else outcome for outcome in outcomes]


def _attempt(tx: Transaction, desk: Desk, by: By, step: Step[Shown]) -> Deed[Shown] | HoldfastError:
    try:
        with tx.savepoint():
            return step.run(tx, desk, by)
    except HoldfastError as error:
        if error.status >= 500:
            raise
        return error


def _spaces(tx: Transaction, steps: Sequence[Step[Shown]]) -> set[int]:
    """Of all books that the steps are about, as far as they are there."""
    books = {step.id for step in steps if step.entity == "book"}
    books.update(step.book_id for step in steps if step.book_id is not None)
    bills = {step.id for step in steps if step.entity == "bill"}
    images = {step.id for step in steps if step.entity == "image"}
    found: set[int] = set()
    sources: tuple[tuple[Query[tuple[str, int]], set[str]], ...] = (
        (sql.SPACES_OF_BOOKS, books),
        (sql.SPACES_OF_BILLS, bills),
        (sql.SPACES_OF_IMAGES, images),
    )
    for query, ids in sources:
        if ids:
            found.update(space for _id, space in tx.rows(query, ids=sorted(ids)))
    return found
