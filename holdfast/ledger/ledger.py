"""The room's face for its doors: a step or a question in, an answer out, after the commit that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from holdfast import feed
from holdfast.blobs import BlobRoom
from holdfast.clock import Clock
from holdfast.errors import HoldfastError, OutcomeUnknown, VersionConflict
from holdfast.feed import Ask, Checksum
from holdfast.http.idempotency import Key, once
from holdfast.ids import IdMaker, XidMaker
from holdfast.ledger import listing, pull
from holdfast.ledger import queries as sql
from holdfast.ledger.actions import Step, batch, do, membership
from holdfast.ledger.actions.batch import Outcome
from holdfast.ledger.actions.desk import OutOfDate
from holdfast.ledger.actions.membership import Code
from holdfast.ledger.listing import BillPage, Listing
from holdfast.ledger.metrics import LedgerMetrics
from holdfast.ledger.model import Book, By, Gone, Shown
from holdfast.ledger.orders import Orders
from holdfast.ledger.pull import Changes
from holdfast.log import get_logger
from holdfast.settings import Settings
from holdfast.store import Database, Transaction

S = TypeVar("S", bound=Shown)

DAY_MS = 24 * 3_600_000
HEAVY = 16
"""Operations from which on a batch shares its commit with nobody."""
TRIES = 5

log = get_logger("ledger")


class Ledger:
    def __init__(
        self, db: Database, blobs: BlobRoom, clock: Clock, settings: Settings, metrics: LedgerMetrics
    ) -> None:
        self.db = db
        self.files = blobs.files
        self.clock = clock
        self.limits = settings.limits
        self.settings = settings.ledger
        self.metrics = metrics
        self.new_id = XidMaker(clock)
        self.orders = Orders(settings.limits, self.new_id, IdMaker(clock), settings.ledger.images_per_bill)
        self._keep_ms = settings.feed.tombstone_days * DAY_MS

    # -- writes

    async def write(self, by: By, step: Step[S], kind: type[S], key: Key | None = None) -> S:
        """`kind`: of what is answered; `key`: the request's `Idempotency-Key`, if it makes something without an id."""
        try:
            done = await self._written(by, step, kind, key)
        except VersionConflict:
            log.warning("version_conflict", entity=step.entity, id=step.id)
            raise
        self.metrics.wrote(step.entity)
        if isinstance(done, Gone):
            log.debug("deleted", entity=step.entity, id=step.id)
        return done

    async def _written(self, by: By, step: Step[S], kind: type[S], key: Key | None) -> S:
        if key is not None:
            return await self.db.write(_do_once, key, kind, by, step)
        if step.entity == "bill":
            return cast("S", await self.db.write_together(batch.together, (by, step)))
        return await self.db.write(do, by, step.run)

    async def batch(self, by: By, asked: Sequence[Step[Shown] | HoldfastError]) -> list[Outcome]:
        write = self.db.write_alone if len(asked) >= HEAVY else self.db.write
        for _ in range(TRIES):
            try:
                outcomes = await write(batch.run, by, asked)
            except OutOfDate:
                continue
            self.metrics.batched(len(outcomes))
            return outcomes
        raise OutcomeUnknown("Others keep changing the same books; send the same batch again.")

    async def share(self, by: By, book_id: str) -> Code:
        return await self.db.write(membership.share, by, book_id, self.settings.code_days * DAY_MS)

    async def revoke(self, by: By, book_id: str) -> None:
        await self.db.write(membership.revoke, by, book_id)

    async def join(self, by: By, code: str) -> Book:
        most = self.limits.members
        book = await self.db.write(do, by, lambda tx, desk, by: membership.join(tx, desk, by, code, most))
        log.info("joined", book_id=book.id)
        return book

    async def leave(self, by: By, book_id: str, who: int) -> Book | Gone:
        done = await self.db.write(do, by, lambda tx, desk, by: membership.leave(tx, desk, by, book_id, who))
        log.info("left" if who == by.user_id else "removed", book_id=book_id, member=who)
        return done

    # -- reads

    async def books(self, user_id: int) -> list[Book]:
        return await self.db.read(sql.my_books, user_id)

    async def bills(self, user_id: int, asked: Listing) -> BillPage:
        return await self.db.read(listing.bills, user_id, asked)

    async def changes(self, ask: Ask) -> Changes:
        now_ms = self.clock.now_ms()
        found = None
        if self.db.backend == "sqlite":  # on the loop's thread; elsewhere it would be a second transaction
            found = await self.db.glance(pull.nothing_new, ask, now_ms, self._keep_ms)
        if found is None:
            found = await self.db.read(pull.changes, ask, now_ms, self._keep_ms)
            self._pulled(ask, found)
        return found

    def _pulled(self, ask: Ask, found: Changes) -> None:
        counts = len(found.books), len(found.bills), len(found.images)
        self.metrics.pulled(*counts, reset=found.reset)
        if any(counts) or found.reset:
            books, bills, images = counts
            log.info(
                "pulled", since=ask.since, next_since=found.next_since, books=books, bills=bills, images=images,
                has_more=found.has_more, reset=found.reset,
            )  # fmt: skip

    async def checksum(self, user_id: int) -> Checksum:
        return await self.db.read(feed.checksum, user_id)


def _do_once(tx: Transaction, key: Key, kind: type[S], by: By, step: Step[S]) -> S:
    return once(tx, key, by.now_ms, kind, lambda: do(tx, by, step.run))
