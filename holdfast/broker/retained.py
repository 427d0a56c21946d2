"""The retained messages: one per topic, in memory for reading and in the store for ever, within two caps."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from holdfast.broker.message import Message
from holdfast.broker.store.rows import StoredRetained, unpacked
from holdfast.broker.topics import RetainedTopics
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

OURS: Final = "$SYS/"
"""What the broker says about itself is said again after a restart, and not kept over it."""

log = get_logger("broker")


class Retained:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: RetainedTopics[Message] = RetainedTopics()
        self._size = 0
        self._expiring: list[tuple[int, str]] = []
        self._most = broker.settings.retained_count
        self._most_bytes = broker.settings.retained_bytes

    def __len__(self) -> int:
        return len(self._topics)

    @property
    def size(self) -> int:
        return self._size

    def load(self, stored: StoredRetained) -> None:
        message = Message(
            stored.topic,
            stored.payload,
            stored.qos,
            True,
            unpacked(stored.properties),
            stored.expires_ms,
        )
        message.id = stored.message_id
        message.stored_ms = stored.stored_ms
        self._put(message)

    def keep(self, message: Message) -> bool:
        """Stores a message that was published with RETAIN, or clears its topic; False when there is no room."""
        topic = message.topic
        if not message.payload:
            self.clear(topic)
            return True
        before = self._topics.get(topic)
        added = message.size - (before.size if before is not None else 0)
        if self._size + added > self._most_bytes or (before is None and len(self._topics) >= self._most):
            return False
        message.stored_ms = self._broker.clock.now_ms()
        self._put(message)
        if not topic.startswith(OURS):
            self._broker.journal.retained(topic, message, before)
        return True

    def clear(self, topic: str) -> bool:
        before = self._topics.remove(topic)
        if before is None:
            return False
        self._size -= before.size
        if not topic.startswith(OURS):
            self._broker.journal.retained(topic, None, before)
        return True

    def match(self, pattern: str) -> Iterator[Message]:
        """As `RetainedTopics.match`: lazily, while topics come and go; without those that have expired."""
        for message in self._topics.values(pattern):
            if message.expires_ms is None or message.expires_ms > self._broker.clock.now_ms():
                yield message

    def sweep(self, now_ms: int) -> int:
        """Takes out what has expired."""
        swept = 0
        while self._expiring and self._expiring[0][0] <= now_ms:
            _, topic = heapq.heappop(self._expiring)
            message = self._topics.get(topic)
            if message is not None and message.expires_ms is not None and message.expires_ms <= now_ms:
                self.clear(topic)
                swept += 1
        return swept

    def _put(self, message: Message) -> None:
        before = self._topics.put(message.topic, message)
        self._size += message.size - (before.size if before is not None else 0)
        if message.expires_ms is not None:
            heapq.heappush(self._expiring, (message.expires_ms, message.topic))
