"""After a commit: members are told. A wake-up, best effort: whoever misses it pulls.

    an HTTP write     heji/notify/{member}/{entity}; the same on heji/down/{member}/{entity} with `ledger.down_topics`
    an uplink write   the same notify; on heji/down/… the author's own message, with the stored entity in it
    either            heji/book/{book}/sync with `ledger.legacy_book_topic`

The answer goes first: the store's event only fills a list, which is told in the loop's next turn, in bounded pieces.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from holdfast.ids import XidMaker
from holdfast.ledger.actions import News
from holdfast.ledger.messages import content_of, spelled
from holdfast.ledger.metrics import LedgerMetrics
from holdfast.ledger.topics import book_topic, down_topic, notify_topic
from holdfast.messenger import Messenger
from holdfast.settings import Ledger

TOPICS_A_TURN = 2_000
"""Then whoever else waits for the loop gets a turn."""


class Notifier:
    def __init__(
        self, messenger: Messenger, settings: Ledger, new_id: XidMaker, metrics: LedgerMetrics
    ) -> None:
        self._messenger = messenger
        self._settings = settings
        self._new_id = new_id
        self._metrics = metrics
        self._waiting: deque[News] = deque()

    def hear(self, news: News) -> None:
        """The store's event."""
        if not news.to and not self._settings.notify_own_devices and not self._settings.legacy_book_topic:
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._tell)
        self._waiting.append(news)

    def _tell(self) -> None:
        told = 0
        while self._waiting and told < TOPICS_A_TURN:
            for topics, payload in self._messages(self._waiting.popleft()):
                self._messenger.tell(topics, payload)
                told += len(topics)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._tell)

    def _messages(self, news: News) -> Iterator[tuple[list[str], bytes]]:
        """Each payload, and the topics that it is told to."""
        settings, content = self._settings, content_of(news.about)
        listeners = self._listeners(news)
        forwarded = news.message_id is not None
        notify = [] if news.again else [notify_topic(member, news.kind) for member in listeners]
        down = (
            [down_topic(member, news.kind) for member in news.to] if forwarded or settings.down_topics else []
        )
        origin = news.origin if settings.notify_own_devices else None
        if not forwarded:
            notify += down
            down = []
        if notify:
            self._metrics.told(news.type)
            yield (
                notify,
                spelled(self._new_id(), news.type, news.book_id, content, news.version, origin=origin),
            )
        if down:
            yield (
                down,
                spelled(news.message_id or self._new_id(), news.type, news.book_id, content, news.version),
            )
        if settings.legacy_book_topic and not news.again:
            id_ = news.message_id or self._new_id()
            sender = str(news.author)
            yield (
                [book_topic(news.book_id)],
                spelled(id_, news.type, news.book_id, content, news.version, sender=sender),
            )

    def _listeners(self, news: News) -> tuple[int, ...]:
        if self._settings.notify_own_devices and news.own:
            return (*news.to, news.author)
        return news.to
