"""What a room asks of MQTT, and what it says about its own topics. The broker answers the one and asks the other;
neither knows the other's room, and `app` brings them together.

    messenger.tell(["heji/notify/7/bill", …], payload)      after a commit: a wake-up, best effort
    messenger.hear("heji/up/#", uplink.hear)                 the publisher is acknowledged when `hear` has returned
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

import msgspec


class Heard(msgspec.Struct, frozen=True):
    """A message that a client published on a topic that a room listens to."""

    topic: str
    payload: bytes
    user_id: int | None
    """Who published it, by the connection's token; None when the broker knows no users."""


Listener = Callable[[Heard], Awaitable[None]]


class Messenger(Protocol):
    def tell(self, topics: Iterable[str], payload: bytes) -> None:
        """Publishes the same payload to each topic, as the server, QoS 1, not retained. Returns at once and never
        raises: who misses it reads the log."""

    def hear(self, topic_filter: str, listener: Listener) -> None:
        """Before the doors open. The publisher's PUBACK or PUBREC leaves when `listener` has returned; when it raises,
        the message stays unacknowledged and the publisher's connection is closed, so that it sends it again. One
        publisher's messages are handed over in their order, different publishers' beside each other, bounded."""


Ruling = bool | Awaitable[bool] | None
"""None: no topic of mine, ask the next room. Nobody answers: no."""


class TopicRules(Protocol):
    """What a user may do on a room's topics. Asked at subscribe and publish, at each delivery, again at resume."""

    def may_subscribe(self, user_id: int, topic_filter: str) -> Ruling:
        """`topic_filter` without its `$share/…/`."""

    def may_publish(self, user_id: int, topic: str) -> Ruling: ...

    def may_receive(self, user_id: int, topic: str) -> bool | None:
        """On the way of every message: an answer at once, within a microsecond."""
