"""Messages that clients publish: `heji/up/{author}/{entity}`, and the topic of a book for the first generation.

The author is the topic's, which the broker's rules make true, never the payload's. `hear` returns when the message is
committed (or can never be), and the broker acknowledges it then; when the store is away it raises, and the client
sends the message again. A message whose id was seen is answered with its first ACK, and applied once.
"""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from holdfast.errors import ActionFailed, Forbidden, HoldfastError, InvalidField, Unavailable
from holdfast.http.body import read_json
from holdfast.ledger import messages
from holdfast.ledger.actions import Step, uplink
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.messages import TYPES, Sent
from holdfast.ledger.model import By, ChangedBill, ChangedBook, Kind, NewBill, NewBook, Shown
from holdfast.ledger.orders import known
from holdfast.ledger.topics import author_of, book_of, book_topic, down_topic
from holdfast.log import get_logger
from holdfast.messenger import Heard, Messenger

log = get_logger("ledger")


class From(Struct, frozen=True):
    """Where a message came from, and where its ACK goes."""

    author: int
    reply: str
    kind: Kind | None = None
    """The entity of the topic; None on the topic of a book."""
    book_id: str | None = None
    """The book of the topic."""


class Uplink:
    def __init__(self, ledger: Ledger, messenger: Messenger) -> None:
        self._ledger = ledger
        self._messenger = messenger

    async def hear(self, heard: Heard) -> None:
        """On `heji/up/#`."""
        found = author_of(heard.topic)
        if found is None or heard.user_id not in (None, found[0]):
            self._drop(heard, "misdirected")
            return
        author, kind = found
        await self._take(heard.payload, From(author, down_topic(author, kind), kind))

    async def hear_book(self, heard: Heard) -> None:
        """On `heji/book/+/sync`: who published is known from the connection alone."""
        book_id = book_of(heard.topic)
        if book_id is None or heard.user_id is None:
            self._drop(heard, "misdirected")
            return
        await self._take(heard.payload, From(heard.user_id, book_topic(book_id), book_id=book_id))

    def _drop(self, heard: Heard, why: str) -> None:
        self._ledger.metrics.uplink(why)
        log.warning("uplink_dropped", topic=heard.topic, why=why)

    async def _take(self, payload: bytes, came: From) -> None:
        try:
            sent = messages.read(payload)
        except HoldfastError as error:
            self._refuse_malformed(payload, came, error)
            return
        by = By(came.author, self._ledger.clock.now_ms())
        try:
            taken = await self._ledger.db.write(
                uplink.take,
                by,
                sent.id,
                sent.book_id,
                self._asked(sent, came),
                lambda outcome: messages.ack(sent.id, sent.type, sent.book_id, outcome, by.now_ms),
            )
        except Unavailable:
            raise
        except Exception:
            # it would fail again and again: the client is told, instead of being kept from everything else
            log.exception("uplink_failed", author=came.author, message_id=sent.id)
            self._ledger.metrics.uplink("failed")
            self._reply(came, messages.ack(sent.id, sent.type, sent.book_id, ActionFailed(), by.now_ms))
            return
        self._count(taken, came, sent)
        self._reply(came, taken.ack)

    def _refuse_malformed(self, payload: bytes, came: From, error: HoldfastError) -> None:
        self._ledger.metrics.uplink("malformed")
        readable = messages.readable(payload)
        log.warning("uplink_malformed", author=came.author, error=error.reason, answered=readable is not None)
        if readable is not None:
            id_, type_ = readable
            now_ms = self._ledger.clock.now_ms()
            self._reply(came, messages.ack(id_, type_, came.book_id or "", error, now_ms))

    def _count(self, taken: uplink.Taken, came: From, sent: Sent) -> None:
        if taken.outcome is None:
            self._ledger.metrics.uplink("replayed")
        elif isinstance(taken.outcome, HoldfastError):
            self._ledger.metrics.uplink("refused")
            log.info("uplink_refused", author=came.author, message_id=sent.id, reason=taken.outcome.reason)
        else:
            self._ledger.metrics.uplink("applied")

    def _reply(self, came: From, ack: bytes) -> None:
        self._messenger.tell([came.reply], ack)

    # -- what a message asks for

    def _asked(self, sent: Sent, came: From) -> Step[Shown] | HoldfastError:
        try:
            return self._step(sent, came)
        except HoldfastError as error:
            return error

    def _step(self, sent: Sent, came: From) -> Step[Shown]:
        if sent.type not in TYPES:
            raise InvalidField("type", "is not known")
        kind, verb = TYPES[sent.type]
        if came.kind is not None and came.kind != kind:
            raise InvalidField("type", f"does not belong on the topic of {came.kind}s")
        if came.book_id is not None:
            if sent.book_id != came.book_id:
                raise InvalidField("book_id", "is not the topic's")
            if sent.sender_id != str(came.author):
                raise Forbidden("sender_id is not you")
        orders = self._ledger.orders
        if verb == "delete":
            delete = {"book": orders.delete_book, "bill": orders.delete_bill, "image": orders.delete_image}
            return delete[kind](messages.id_in(sent))
        if kind == "image":
            return orders.confirm_image(*messages.image_in(sent))
        if kind == "book":
            book = read_json(messages.entity_in(sent), ChangedBook)
            return self._book(sent, book, is_new=verb == "add")
        bill = read_json(messages.entity_in(sent), ChangedBill)
        return self._bill(sent, bill, is_new=verb == "add")

    def _book(self, sent: Sent, book: ChangedBook, *, is_new: bool) -> Step[Shown]:
        if book.id is None or book.id != sent.book_id:
            raise InvalidField("book_id", "is not the book's _id")
        if not is_new:
            return self._ledger.orders.change_book(known(book.id), book)
        new = NewBook(
            id=book.id, name=book.name, type=book.type, banner=book.banner, is_initial=book.is_initial
        )
        return self._ledger.orders.create_book(new)

    def _bill(self, sent: Sent, bill: ChangedBill, *, is_new: bool) -> Step[Shown]:
        if bill.id is None:
            raise InvalidField("content", "must have the bill's _id")
        if bill.book_id is not None and bill.book_id != sent.book_id:
            raise InvalidField("book_id", "is not the bill's")
        if not is_new:
            return self._ledger.orders.change_bill(known(bill.id), replace(bill, book_id=None))
        new = NewBill(
            id=bill.id,
            book_id=sent.book_id,
            money=bill.money,
            type=bill.type,
            category=bill.category,
            time=bill.time,
            remark=bill.remark,
        )
        return cast("Step[Shown]", self._ledger.orders.create_bill(new))
