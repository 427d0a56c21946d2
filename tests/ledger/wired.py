"""The room without doors but MQTT's: a messenger that remembers what it was told, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from holdfast import feed
from holdfast.blobs import BlobRoom
from holdfast.broker.topics.matching import matches
from holdfast.clock import Clock, ManualClock
from holdfast.ledger.actions import Step
from holdfast.ledger.model import Bill, Book, By, NewBill, NewBook, Shown
from holdfast.ledger.room import LedgerRoom
from holdfast.messenger import Heard, Listener, TopicRules
from holdfast.metrics import Metrics
from holdfast.settings import Ledger, Settings
from holdfast.store import Database
from holdfast.store.migrations import of_rooms
from tests.conftest import OpenStore
from tests.ledger.house import HOME, LUNCH, new_id

MIGRATIONS = of_rooms("store", "http", "accounts", "feed", "blobs", "ledger")
ANN, BOB, CAT = 7, 8, 9


class Recorder:
    """Implements `Messenger`; what a client publishes is handed over as the broker does."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self._listeners: list[tuple[str, Listener]] = []

    def tell(self, topics: Iterable[str], payload: bytes) -> None:
        self.told += [(topic, msgspec.json.decode(payload)) for topic in topics]

    def hear(self, topic_filter: str, listener: Listener) -> None:
        self._listeners.append((topic_filter, listener))

    async def publish(self, topic: str, message: object, user_id: int | None = None) -> None:
        payload = message if isinstance(message, bytes) else msgspec.json.encode(message)
        for topic_filter, listener in self._listeners:
            if matches(topic_filter, topic):
                await listener(Heard(topic, payload, user_id))

    def on(self, topic_start: str) -> list[dict[str, Any]]:
        """What was told on the topics that begin so."""
        return [message for topic, message in self.told if topic.startswith(topic_start)]

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.told]

    def forget(self) -> None:
        self.told.clear()


class Wired:
    def __init__(self, db: Database, room: LedgerRoom, messenger: Recorder, clock: Clock) -> None:
        self.db = db
        self.room = room
        self.ledger = room.ledger
        self.orders = room.ledger.orders
        self.messenger = messenger
        self.clock = clock

    @property
    def rules(self) -> TopicRules:
        (rules,) = self.room.topic_rules()
        return rules

    async def does(self, who: int, step: Step[Any], origin: str | None = None) -> Any:
        """Once it has been told to whom it concerns."""
        done = await self.ledger.write(By(who, self.clock.now_ms(), origin), step, Shown)  # type: ignore[arg-type]
        await self.settled()
        return done

    async def settled(self) -> None:
        """What the commit has put off to the loop's next turns has been done."""
        for _ in range(3):
            await asyncio.sleep(0)

    async def book_of(self, first: int, *others: int) -> Book:
        book = await self.does(first, self.orders.create_book(msgspec.convert(HOME, NewBook)))
        for other in others:
            code = await self.ledger.share(By(first, self.clock.now_ms()), book.id)
            book = await self.ledger.join(By(other, self.clock.now_ms()), code.code)
        await self.settled()
        self.messenger.forget()
        assert isinstance(book, Book)
        return book

    async def bill_of(self, who: int, book: Book, **fields: object) -> Bill:
        new = msgspec.convert({**LUNCH, "_id": new_id(), "book_id": book.id, **fields}, NewBill)
        bill = await self.does(who, self.orders.create_bill(new))
        assert isinstance(bill, Bill)
        return bill


@asynccontextmanager
async def wired(open_store: OpenStore, folder: Path, **settings: object) -> AsyncIterator[Wired]:
    clock, metrics, recorder = ManualClock(), Metrics(), Recorder()
    whole = Settings(ledger=msgspec.structs.replace(Ledger(), **settings))
    async with open_store(MIGRATIONS) as db:
        await db.write(feed.ensure_epoch)
        blobs = BlobRoom(db, folder / "blobs", clock, whole.blobs, metrics)
        room = LedgerRoom(db, blobs, clock, whole, metrics, recorder)
        await blobs.start()
        try:
            yield Wired(db, room, recorder, clock)
        finally:
            await room.stop()
            await blobs.stop()
