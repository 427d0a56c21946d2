"""Shared account books, as an app uses them. Everything here but `share`, `join` and the like is local, and at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.client.account import Account
from holdfast.client.contents import Contents
from holdfast.client.errors import NotHere
from holdfast.client.http import Http
from holdfast.client.ledger import changes, outbox, rows, rules
from holdfast.client.ledger.changes import BOOKS, LEDGER, OUTBOX, in_book
from holdfast.client.ledger.images import Images
from holdfast.client.ledger.losing import LOST
from holdfast.client.ledger.model import NOT_SYNCED, Bill, Book, Image, Lost, ShareCode
from holdfast.client.ledger.settle import discard
from holdfast.client.ledger.sync import LedgerSync
from holdfast.client.ledger.wire import Envelope, WireBook
from holdfast.client.news import ChangeLost, News, Waiting
from holdfast.client.replica import Replica, Transaction, Value, View
from holdfast.client.timing import Timing, within
from holdfast.client.watching import watched
from holdfast.clock import rfc3339
from holdfast.ids import XidMaker

T = TypeVar("T")

UPLINK_SECONDS = 20.0
FIRST, LAST = "", "~"
"""Before and behind every time that a bill may have."""

_code = msgspec.json.Decoder(Envelope[ShareCode])
_book = msgspec.json.Decoder(Envelope[WireBook])


class Ledger:
    def __init__(
        self,
        replica: Replica,
        http: Http,
        account: Account,
        timing: Timing,
        news: News,
        contents: Contents,
        *,
        uplink: bool,
        new_id: XidMaker,
    ) -> None:
        self._replica = replica
        self._http = http
        self._account = account
        self._timing = timing
        self._news = news
        self._uplink = uplink
        self._new_id = new_id
        self._contents = contents
        self.sync = LedgerSync(replica, http, timing, news)
        self.images_of_bills = Images(replica, http, contents, self.sync)

    # -- books

    async def add_book(
        self,
        name: str,
        type: str = "daily",  # noqa: A002 - the wire's word
        *,
        banner: str | None = None,
        is_initial: bool = False,
    ) -> Book:
        me = self._account.user_id
        book = Book(
            id=self._new_id(),
            name=rules.checked_name("name", name),
            type=rules.checked_name("type", type),
            banner=banner,
            crt_user_id=me,
            members=(me,),
            is_initial=is_initial,
            crt_time=rfc3339(self._timing.now_ms()),
            upd_time="",
            synced=NOT_SYNCED,
        )
        return await self._replica.write(partial(changes.add_book, book=book))

    async def change_book(
        self,
        book_id: str,
        *,
        name: str | UnsetType = UNSET,
        type: str | UnsetType = UNSET,  # noqa: A002 - the wire's word
        banner: str | UnsetType | None = UNSET,
    ) -> Book:
        values: dict[str, Value] = {}
        if name is not UNSET:
            values["name"] = rules.checked_name("name", name)
        if type is not UNSET:
            values["type"] = rules.checked_name("type", type)
        if banner is not UNSET:
            values["banner"] = banner
        me = self._account.user_id
        return await self._replica.write(
            lambda tx: changes.change_book(tx, me, book_id, values, uplink=self._uplink)
        )

    async def delete_book(self, book_id: str) -> None:
        """With everything in it."""
        await self._replica.write(partial(changes.delete_book, me=self._account.user_id, book_id=book_id))

    async def books(self) -> list[Book]:
        return await self._replica.read(_books)

    async def book(self, book_id: str) -> Book:
        return await self._replica.read(partial(changes.get_book, book_id=book_id))

    # -- bills

    async def add_bill(
        self,
        book_id: str,
        money: object,
        category: str,
        *,
        type: int = 1,  # noqa: A002 - the wire's word
        time: str | None = None,
        remark: str | None = None,
    ) -> Bill:
        """`money` is a Decimal, an int or a text such as "12.50"; `time` a date, or a moment in RFC 3339."""
        now = rfc3339(self._timing.now_ms())
        bill = Bill(
            id=self._new_id(),
            book_id=book_id,
            money=rules.checked_money(money),
            type=rules.checked_type(type),
            category=rules.checked_name("category", category),
            time=now[:10] if time is None else rules.checked_time(time),
            remark=rules.checked_remark(remark),
            crt_user=self._account.user_id,
            crt_time=now,
            upd_time="",
            synced=NOT_SYNCED,
        )
        return await self._replica.write(partial(changes.add_bill, bill=bill))

    async def change_bill(
        self,
        bill_id: str,
        *,
        money: object = UNSET,
        category: str | UnsetType = UNSET,
        type: int | UnsetType = UNSET,  # noqa: A002 - the wire's word
        time: str | UnsetType = UNSET,
        remark: str | UnsetType | None = UNSET,
    ) -> Bill:
        values: dict[str, Value] = {}
        if money is not UNSET:
            values["money"] = str(rules.checked_money(money))
        if category is not UNSET:
            values["category"] = rules.checked_name("category", category)
        if type is not UNSET:
            values["type"] = rules.checked_type(type)
        if time is not UNSET:
            values["time"] = rules.checked_time(time)
        if remark is not UNSET:
            values["remark"] = rules.checked_remark(remark)
        me = self._account.user_id
        return await self._replica.write(
            lambda tx: changes.change_bill(tx, me, bill_id, values, uplink=self._uplink)
        )

    async def delete_bill(self, bill_id: str) -> None:
        """With its images."""
        await self._replica.write(partial(changes.delete_bill, me=self._account.user_id, bill_id=bill_id))

    async def bills(
        self, book_id: str, *, since: str = FIRST, before: str = LAST, limit: int = -1
    ) -> list[Bill]:
        """Newest first by `time`, from `since` until before `before`; a `limit` below 0: all."""
        return await self._replica.read(lambda view: _bills(view, book_id, since, before, limit))

    async def bill(self, bill_id: str) -> Bill:
        return await self._replica.read(partial(changes.get_bill, bill_id=bill_id))

    # -- images

    async def add_image(self, bill_id: str, source: Path | bytes) -> Image:
        return await self.images_of_bills.add(self._account.user_id, self._new_id(), bill_id, source)

    async def delete_image(self, image_id: str) -> None:
        await self._replica.write(partial(changes.delete_image, me=self._account.user_id, image_id=image_id))

    async def images(self, bill_id: str) -> list[Image]:
        return await self._replica.read(
            lambda view: [rows.as_image(row) for row in view.rows(rows.IMAGES, bill_id)]
        )

    async def image_file(self, image_id: str) -> Path:
        """The image's file; fetched now if it is not here, which is the one read that may need the server."""
        return await self.images_of_bills.file(
            await self._replica.read(partial(changes.get_image, image_id=image_id))
        )

    # -- who may, and what waits

    def can_edit(self, row: Book | Bill | Image) -> bool:
        """For a user interface: whether a change of it would be refused with `NotOwner`."""
        maker = row.crt_user_id if isinstance(row, Book) else row.crt_user
        return rules.is_mine(maker, self._account.user_id)

    async def parked(self) -> list[Book | Bill | Image]:
        """Rows that the server refused, each with its `refusal`: change them, `retry` or `discard` them."""
        return await self._replica.read(_parked)

    async def retry(self, row_id: str) -> None:
        """Sends a parked row again as it is."""
        await self._replica.write(partial(changes.retry, identity=row_id))

    async def discard(self, row_id: str) -> None:
        """Gives up a change that has not been synced: what the server has stands again."""
        if not await self._replica.write(partial(discard, identity=row_id)):
            raise NotHere(f"there is no unsynced change of {row_id} in this replica")

    async def lost(self) -> list[Lost]:
        """Changes of ours that can never be delivered: what they belonged to is gone."""
        return await self._replica.read(_lost)

    async def forget_lost(self) -> None:
        """The app has shown them."""
        await self._replica.write(_forget_lost)

    async def waiting(self) -> Waiting:
        return await self._replica.read(lambda view: Waiting(outbox.pending(view), outbox.parked(view)))

    # -- with others: these ask the server, and raise `Offline` when it cannot be reached

    async def share(self, book_id: str) -> ShareCode:
        """A code with which others join the book. What waits is sent first: the book may be new."""
        await self.book(book_id)
        if self._uplink:
            await within(self._timing, UPLINK_SECONDS, self._until_held(book_id))
        else:
            await self.sync.drain(at_once=True)
        answer = await self._http.ask("POST", f"/api/v1/books/{book_id}/share", body=b"{}", at_once=True)
        return _code.decode(answer.content).data

    async def _until_held(self, book_id: str) -> None:
        """Over MQTT a new book goes up by itself."""
        changed = self._replica.watch((LEDGER,))
        try:
            while not await self._replica.read(partial(outbox.is_held, book_id=book_id)):
                await changed.wait()
                changed.clear()
        finally:
            self._replica.unwatch(changed)

    async def stop_sharing(self, book_id: str) -> None:
        """The code works no more; who joined stays."""
        await self._http.ask("DELETE", f"/api/v1/books/{book_id}/share", at_once=True)

    async def join(self, code: str) -> Book:
        """Joins a book and pulls what is in it."""
        body = msgspec.json.encode({"code": code})
        answer = await self._http.ask("POST", "/api/v1/books/join", body=body, at_once=True)
        await self.sync.pull(at_once=True)
        return await self.book(_book.decode(answer.content).data.id)

    async def remove_member(self, book_id: str, user_id: str) -> None:
        """For the book's maker."""
        await self._http.ask("DELETE", f"/api/v1/books/{book_id}/members/{user_id}", at_once=True)
        await self.sync.pull(at_once=True)

    async def leave(self, book_id: str) -> None:
        """A book that somebody else made."""
        await self.remove_member(book_id, self._account.user_id)

    async def refresh(self) -> int:
        """Pulls now; how much came."""
        return await self.sync.pull(at_once=True)

    # -- live

    async def watch(self, book_id: str) -> AsyncIterator[list[Bill]]:
        """The bills of a book, now and after every change of them, whoever made it. Ends when the book is gone."""
        async for bills in self._watched(
            (in_book(book_id), BOOKS), lambda view: _bills_or_none(view, book_id)
        ):
            if bills is None:
                return
            yield bills

    async def watch_books(self) -> AsyncIterator[list[Book]]:
        async for books in self._watched((BOOKS,), _books):
            yield books

    def _watched(self, topics: tuple[str, ...], query: Callable[[View], T]) -> AsyncIterator[T]:
        return watched(self._replica, topics, query)

    # -- in the background

    async def tell_what_was_lost(self) -> None:
        known = len(await self.lost())
        changed = self._replica.watch((LOST,))
        try:
            while True:
                await changed.wait()
                changed.clear()
                now = len(await self.lost())
                if now > known:
                    self._news.tell(ChangeLost("ledger", now - known))
                known = now
        finally:
            self._replica.unwatch(changed)


def _books(view: View) -> list[Book]:
    return [rows.as_book(row) for row in view.rows(rows.BOOKS)]


def _bills(view: View, book_id: str, since: str, before: str, limit: int) -> list[Bill]:
    changes.get_book(view, book_id)
    return [rows.as_bill(row) for row in view.rows(rows.BILLS, book_id, since, before, limit)]


def _bills_or_none(view: View, book_id: str) -> list[Bill] | None:
    if view.row(rows.BOOK, book_id) is None:
        return None
    return _bills(view, book_id, FIRST, LAST, -1)


def _parked(view: View) -> list[Book | Bill | Image]:
    found: list[Book | Bill | Image] = []
    found += [rows.as_book(row) for row in view.rows(rows.PARKED["book"])]
    found += [rows.as_bill(row) for row in view.rows(rows.PARKED["bill"])]
    found += [rows.as_image(row) for row in view.rows(rows.PARKED["image"])]
    return found


def _lost(view: View) -> list[Lost]:
    found = view.rows("SELECT number, kind, id, body, reason, lost_ms FROM lost ORDER BY number")
    return [Lost(*row) for row in found]  # type: ignore[arg-type]


def _forget_lost(tx: Transaction) -> None:
    tx.execute("DELETE FROM lost")
    tx.changed(LOST, LEDGER, OUTBOX)
