"""`/api/v1/bills`."""

from __future__ import annotations

from typing import Annotated

from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody, QueryParameter

from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import delete, get, post, put
from holdfast.http.visit import caller
from holdfast.ledger import listing
from holdfast.ledger.http import examples
from holdfast.ledger.http.examples import shown
from holdfast.ledger.http.request import TOKEN, by, key_for, page_limit
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.listing import BillPage, Listing
from holdfast.ledger.model import Bill, ChangedBill, Gone, NewBill
from holdfast.ledger.orders import known
from holdfast.ledger.rules import moment_ms

BookId = Annotated[str, QueryParameter(description="whose bills")]
Limit = Annotated[int | None, QueryParameter(description="bills of a page; 100 when absent")]
From = Annotated[str | None, QueryParameter(name="from", description="a date or a moment: not before it")]
To = Annotated[str | None, QueryParameter(description="a date (all of that day) or a moment: not after it")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before")]


def handlers(ledger: Ledger) -> list[HTTPRouteHandler]:
    @post(
        "/bills",
        summary="Make a bill",
        status_code=201,
        security=TOKEN,
        operation_class=shown(sent=examples.NEW_BILL, answered=examples.BILL),
    )
    async def create(data: JSONBody[NewBill]) -> Answer[Bill]:
        """By a member of its book. Sent again with the same `_id` and the same content, it answers 201 with what is
        there; with other content, 409 `exists_mine` (yours) or `id_conflict`. Without an `_id` it takes an
        `Idempotency-Key`."""
        who = by(ledger)
        step = ledger.orders.create_bill(data)
        return answer(await ledger.write(who, step, Bill, key_for(who, data.id, data)))

    @put(
        "/bills/{bill_id:str}",
        summary="Change a bill",
        security=TOKEN,
        operation_class=shown(sent=examples.CHANGED_BILL, answered=examples.BILL),
    )
    async def change(bill_id: FromPath[str], data: JSONBody[ChangedBill]) -> Answer[Bill]:
        """A full replacement, by whoever made it; it stays in its book. With `base_upd_time`, 412 when it was changed
        since. What is stored already is answered as it is."""
        return answer(await ledger.write(by(ledger), ledger.orders.change_bill(bill_id, data), Bill))

    @delete(
        "/bills/{bill_id:str}",
        summary="Delete a bill",
        status_code=200,
        security=TOKEN,
        operation_class=shown(answered=examples.GONE),
    )
    async def remove(bill_id: FromPath[str]) -> Answer[Gone]:
        """By whoever made it, with its images. Again is harmless."""
        return answer(await ledger.write(by(ledger), ledger.orders.delete_bill(bill_id), Gone))

    @get(
        "/bills",
        summary="The bills of a book, newest first",
        security=TOKEN,
        operation_class=shown(answered=examples.LISTED),
    )
    async def list_newest_first(
        book_id: BookId, limit: Limit = None, from_: From = None, to: To = None, cursor: Cursor = None
    ) -> Answer[BillPage]:
        """For members; ordered by the bills' own time."""
        who = caller().user_id
        asked = Listing(
            book_id=known(book_id),
            limit=page_limit(ledger, limit),
            first=listing.FIRST if from_ is None else moment_ms("from", from_),
            last=listing.LAST if to is None else moment_ms("to", to, end_of_day=True),
            after=None if cursor is None else listing.place(cursor),
        )
        return answer(await ledger.bills(who, asked))

    return [create, change, remove, list_newest_first]
