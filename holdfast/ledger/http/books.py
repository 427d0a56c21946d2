"""`/api/v1/books`: books, and who is in them."""

from __future__ import annotations

from typing import Annotated, cast

from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody
from msgspec import Meta, Struct

from holdfast.clock import rfc3339
from holdfast.errors import NotFound
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import delete, get, post, put
from holdfast.http.rate import RateLimit
from holdfast.http.visit import caller
from holdfast.ledger.http import examples
from holdfast.ledger.http.examples import shown
from holdfast.ledger.http.request import TOKEN, by, key_for, user_id
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.model import Book, ChangedBook, Gone, Moment, NewBook
from holdfast.ledger.orders import known

Code = Annotated[str, Meta(examples=["7KQ2M9XB"], max_length=64)]


class Shared(Struct, frozen=True):
    code: Code
    expires_at: Moment


class Joining(Struct, frozen=True):
    code: Code


def handlers(ledger: Ledger) -> list[HTTPRouteHandler]:
    tries = RateLimit(ledger.settings.join_tries, ledger.clock)

    @post(
        "/books",
        summary="Make a book",
        status_code=201,
        security=TOKEN,
        operation_class=shown(sent=examples.NEW_BOOK, answered=examples.BOOK),
    )
    async def create(data: JSONBody[NewBook]) -> Answer[Book]:
        """Sent again with the same `_id` and the same content, it answers 201 with what is there; with other content,
        409 `exists_mine` (yours) or `id_conflict`. Without an `_id` it takes an `Idempotency-Key`."""
        who = by(ledger)
        step = ledger.orders.create_book(data)
        return answer(await ledger.write(who, step, Book, key_for(who, data.id, data)))

    @get(
        "/books",
        summary="The books I made and those I joined",
        security=TOKEN,
        operation_class=shown(answered=[examples.BOOK]),
    )
    async def list_mine() -> Answer[list[Book]]:
        return answer(await ledger.books(caller().user_id))

    @put(
        "/books/{book_id:str}",
        summary="Change a book",
        security=TOKEN,
        operation_class=shown(sent=examples.CHANGED_BOOK, answered=examples.BOOK),
    )
    async def change(book_id: FromPath[str], data: JSONBody[ChangedBook]) -> Answer[Book]:
        """A full replacement, by its creator. With `base_upd_time`, 412 when somebody (you, on another device) changed it
        since. What is stored already is answered as it is."""
        return answer(await ledger.write(by(ledger), ledger.orders.change_book(book_id, data), Book))

    @delete(
        "/books/{book_id:str}",
        summary="Delete a book",
        status_code=200,
        security=TOKEN,
        operation_class=shown(answered=examples.GONE),
    )
    async def remove(book_id: FromPath[str]) -> Answer[Gone]:
        """By its creator, with its bills and images, for every member. Again is harmless."""
        return answer(await ledger.write(by(ledger), ledger.orders.delete_book(book_id), Gone))

    @post(
        "/books/{book_id:str}/share",
        summary="A code to join a book with",
        status_code=200,
        security=TOKEN,
        operation_class=shown(answered=Shared(examples.CODE, examples.CHANGED)),
    )
    async def share(book_id: FromPath[str]) -> Answer[Shared]:
        """By its creator: the code that is active, or a new one."""
        made = await ledger.share(by(ledger), known(book_id))
        return answer(Shared(made.code, rfc3339(made.expires_ms)))

    @delete(
        "/books/{book_id:str}/share",
        summary="Revoke the code",
        status_code=200,
        security=TOKEN,
        operation_class=shown(),
    )
    async def revoke(book_id: FromPath[str]) -> Answer[None]:
        """Nobody joins with it any more; those who did stay."""
        await ledger.revoke(by(ledger), known(book_id))
        return answer(None)

    @post(
        "/books/join",
        summary="Join a book",
        status_code=200,
        security=TOKEN,
        operation_class=shown(sent=Joining(examples.CODE), answered=examples.BOOK),
    )
    async def join(data: JSONBody[Joining]) -> Answer[Book]:
        """Upper or lower case. Whoever is a member already is answered the book."""
        who = by(ledger)
        tries.spend(who.user_id)
        return answer(await ledger.join(who, data.code))

    @delete(
        "/books/{book_id:str}/members/{member_id:str}",
        summary="Leave a book, or remove a member",
        status_code=200,
        security=TOKEN,
        operation_class=shown(answered=examples.BOOK),
    )
    async def leave(book_id: FromPath[str], member_id: FromPath[str]) -> Answer[Book]:
        """A member leaves; or the creator removes one, which revokes the code too. The creator cannot leave. The creator
        is answered the book; whoever leaves, of the book that he does not see any more, only `_id` and `version`."""
        who, member = by(ledger), user_id(member_id)
        if member is None:
            raise NotFound
        return answer(cast("Book", await ledger.leave(who, known(book_id), member)))

    return [create, list_mine, change, remove, share, revoke, join, leave]
