"""Many operations in one transaction, each undone alone when it is refused: how an outbox drains fast."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from holdfast import feed
from holdfast.errors import HoldfastError
from holdfast.ledger import queries as sql
from holdfast.ledger.actions import bills
from holdfast.ledger.actions.deed import Deed
from holdfast.ledger.actions.desk import Desk
from holdfast.ledger.actions.post import do, post_all
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
    taken = iter(_all(tx, [(by, step) for step in asked if isinstance(step, Step)]))
    outcomes = [next(taken) if isinstance(step, Step) else step for step in asked]
    return [outcome if isinstance(outcome, HoldfastError) else Done(outcome) for outcome in outcomes]


def together(tx: Transaction, asked: Sequence[tuple[By, Step[Shown]]]) -> Sequence[Shown | HoldfastError]:
    """What each of several people asked for came to, or why it was refused. Only bills: see `Deed.holder`."""
    if len(asked) > 1:
        return _all(tx, asked)
    ((by, step),) = asked
    return [do(tx, by, step.run)]


def _all(tx: Transaction, asked: Sequence[tuple[By, Step[Shown]]]) -> list[Shown | HoldfastError]:
    desk = Desk(tx, feed.lock_spaces(tx, _spaces(tx, [step for _, step in asked])))
    outcomes = _attempts(tx, desk, asked)
    deeds = [
        (by, outcome) for (by, _), outcome in zip(asked, outcomes, strict=True) if isinstance(outcome, Deed)
    ]
    done = iter(post_all(tx, desk, deeds))
    return [next(done) if isinstance(outcome, Deed) else outcome for outcome in outcomes]


def _attempts(
    tx: Transaction, desk: Desk, asked: Sequence[tuple[By, Step[Shown]]]
) -> list[Deed[Shown] | HoldfastError]:
    outcomes: list[Deed[Shown] | HoldfastError] = []
    for makes_bills, some in groupby(asked, lambda one: one[1].new is not None):
        if makes_bills:
            new = [(by, step.id, step.new) for by, step in some if step.new is not None]
            outcomes += bills.create_many(tx, desk, new)
        else:
            outcomes += [_attempt(tx, desk, by, step) for by, step in some]
    return outcomes


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
    old_bills = {step.id for step in steps if step.entity == "bill" and step.new is None}
    images = {step.id for step in steps if step.entity == "image"}
    found: set[int] = set()
    sources: tuple[tuple[Query[tuple[str, int]], set[str]], ...] = (
        (sql.SPACES_OF_BOOKS, books),
        (sql.SPACES_OF_BILLS, old_bills),
        (sql.SPACES_OF_IMAGES, images),
    )
    for query, ids in sources:
        if ids:
            found.update(space for _id, space in tx.rows(query, ids=sorted(ids)))
    return found
