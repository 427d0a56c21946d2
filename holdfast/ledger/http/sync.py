"""`/api/v1/sync`: the outbox in, the feed out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody, QueryParameter
from msgspec import Struct

from holdfast.errors import HoldfastError, InvalidField
from holdfast.feed import Ask, Checksum
from holdfast.http.body import read_json
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get, post
from holdfast.http.visit import caller
from holdfast.ids import MAX_ID
from holdfast.ledger.actions import Step
from holdfast.ledger.actions.batch import Done, Outcome
from holdfast.ledger.http import examples
from holdfast.ledger.http.examples import shown
from holdfast.ledger.http.request import TOKEN, by, page_limit
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.model import ChangedBill, ChangedBook, Kind, NewBill, NewBook, Shown, Xid
from holdfast.ledger.orders import Orders
from holdfast.ledger.pull import Changes
from holdfast.ledger.rules import checked_id

LONGEST_EPOCH = 64

Since = Annotated[int, QueryParameter(description="`next_since` of the page before; 0 for everything")]
Limit = Annotated[int | None, QueryParameter(description="entities of a page; 100 when absent")]
EpochText = Annotated[
    str | None,
    QueryParameter(description="`epoch` of the page before: a client that was away for too long starts over"),
]


B = TypeVar("B", NewBook, ChangedBook, NewBill, ChangedBill)


class Operation(Struct, frozen=True):
    """What a single request would do; `data` is its body."""

    op: Literal["create", "update", "delete"]
    entity: Kind
    id: Xid
    data: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class Operations(Struct, frozen=True):
    operations: list[Operation]


class Result(Struct, frozen=True):
    """What the single request would have answered: its status, its code and reason (0 and none: success), its data."""

    status: int
    code: int
    reason: str | None
    data: object | None


def handlers(ledger: Ledger) -> list[HTTPRouteHandler]:
    @post(
        "/sync/batch",
        summary="Many changes at once",
        status_code=200,
        security=TOKEN,
        operation_class=shown(sent=examples.BATCH, answered=examples.RESULTS),
    )
    async def batch(data: JSONBody[list[Operation] | Operations]) -> Answer[list[Result]]:
        """Up to 500 operations, in their order and one commit; one that is refused is undone alone. A plain list is taken
        too. Images can only be deleted here. Every operation can be sent twice, as single requests can."""
        who = by(ledger)
        operations = data.operations if isinstance(data, Operations) else data
        if len(operations) > ledger.settings.batch:
            raise InvalidField("operations", f"must be at most {ledger.settings.batch}")
        asked = [_asked(ledger.orders, operation) for operation in operations]
        outcomes = await ledger.batch(who, asked)
        return answer(
            [_result(operation, found) for operation, found in zip(operations, outcomes, strict=True)]
        )

    @get(
        "/sync/changes",
        summary="What is new",
        security=TOKEN,
        operation_class=shown(answered=examples.PAGE),
    )
    async def changes(since: Since, limit: Limit = None, epoch: EpochText = None) -> Answer[Changes]:
        """Everything above `since` that the caller may see, in order, as it is now; ask again with `next_since` and `epoch`
        while `has_more`. With `reset`, mark what the pages show and drop the rest after the last one."""
        who = caller().user_id
        if not 0 <= since <= MAX_ID:
            raise InvalidField("since", "must be 0 or a next_since of an earlier page")
        if epoch is not None and len(epoch) > LONGEST_EPOCH:
            raise InvalidField("epoch", "must be the epoch of an earlier page")
        return answer(await ledger.changes(Ask(who, since, page_limit(ledger, limit), epoch)))

    @get(
        "/sync/checksum",
        summary="What everything adds up to",
        security=TOKEN,
        operation_class=shown(answered=examples.CHECKSUM),
    )
    async def checksum() -> Answer[Checksum]:
        """For a client whose `since` is `version`: the number of entities, and the sum (modulo 2^64, 16 hex digits) of the
        first 8 bytes of SHA-256(kind + "\\n" + _id + "\\n" + upd_time)."""
        return answer(await ledger.checksum(caller().user_id))

    return [batch, changes, checksum]


def _asked(orders: Orders, operation: Operation) -> Step[Shown] | HoldfastError:
    try:
        return _step(orders, operation)
    except HoldfastError as error:
        return error


def _step(orders: Orders, operation: Operation) -> Step[Shown]:
    id_ = checked_id("id", operation.id)
    match operation.op, operation.entity:
        case "create", "book":
            return orders.create_book(_named(_body(operation, NewBook), id_))
        case "update", "book":
            return orders.change_book(id_, _body(operation, ChangedBook))
        case "delete", "book":
            return orders.delete_book(id_)
        case "create", "bill":
            return orders.create_bill(_named(_body(operation, NewBill), id_))
        case "update", "bill":
            return orders.change_bill(id_, _body(operation, ChangedBill))
        case "delete", "bill":
            return orders.delete_bill(id_)
        case "delete", "image":
            return orders.delete_image(id_)
        case _:
            raise InvalidField("op", "images can only be deleted here; upload them one by one")


def _body(operation: Operation, kind: type[B]) -> B:
    if bytes(operation.data) in (b"", b"null"):
        raise InvalidField("data", "is missing")
    return read_json(bytes(operation.data), kind)


N = TypeVar("N", NewBook, NewBill)


def _named(new: N, id_: str) -> N:
    if new.id is not None and new.id != id_:
        raise InvalidField("data._id", "is not the operation's id")
    return msgspec.structs.replace(new, id=id_)


def _result(operation: Operation, outcome: Outcome) -> Result:
    if isinstance(outcome, Done):
        return Result(201 if operation.op == "create" else 200, 0, None, outcome.entity)
    return Result(outcome.status, outcome.code(), outcome.reason, outcome.data)
