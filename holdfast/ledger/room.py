"""Wires the room: shared account books."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Router

from holdfast.blobs import BlobRoom
from holdfast.chores import Chore
from holdfast.clock import Clock
from holdfast.ledger import http, sweep, topics
from holdfast.ledger.actions import News
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.members import BookMembers
from holdfast.ledger.metrics import LedgerMetrics
from holdfast.ledger.notify import Notifier
from holdfast.ledger.uplink import Uplink
from holdfast.messenger import Messenger, TopicRules
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database

DAY_MS = 24 * 3_600_000


class LedgerRoom(Service):
    def __init__(
        self,
        db: Database,
        blobs: BlobRoom,
        clock: Clock,
        settings: Settings,
        metrics: Metrics,
        messenger: Messenger,
    ) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        counted = LedgerMetrics(metrics)
        self.ledger = Ledger(db, blobs, clock, settings, counted)
        notifier = Notifier(messenger, settings.ledger, self.ledger.new_id, counted)
        db.subscribe(News, notifier.hear)
        uplink = Uplink(self.ledger, messenger)
        messenger.hear(topics.UPLINK, uplink.hear)
        self._members: BookMembers | None = None
        if settings.ledger.legacy_book_topic:
            self._members = BookMembers(db, clock)
            messenger.hear(topics.BOOK_TOPICS, uplink.hear_book)

    def topic_rules(self) -> Sequence[TopicRules]:
        return (topics.LedgerTopics(self._members),)

    async def stop(self) -> None:
        if self._members is not None:
            await self._members.stop()

    def routers(self) -> Sequence[Router]:
        return (http.router(self.ledger),)

    def chores(self) -> Sequence[Chore]:
        return (Chore("ledger", self._settings.ledger.sweep_minutes * 60, self._sweep),)

    async def _sweep(self) -> int:
        keep_ms = self._settings.feed.tombstone_days * DAY_MS
        return await self._db.write_in_turns(sweep.sweep, self._clock.now_ms(), keep_ms)
