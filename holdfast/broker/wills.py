"""Wills: what the broker publishes for a client that went without a word (3.1.2.5, 3.1.3.2).

| a will is | in the store | leaves it by |
|---|---|---|
| set: its client is here | from CONNACK on, without a due time | DISCONNECT → cleared; else → due, or published |
| due: its delay runs | with its due time | its client is back → cleared; the time, the session's end → published |

After a crash or a stop every will in the store is due, its delay counted from the restart. Publishing and clearing are
in one commit, so a will is published once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.broker.hooks import Access
from holdfast.broker.message import Message
from holdfast.broker.packets import Will
from holdfast.broker.session.session import Session
from holdfast.broker.store.rows import StoredWill, packed, unpacked
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

log = get_logger("broker")


class Testator(msgspec.Struct, frozen=True):
    """Whose will it is, for `authorise`: their session may be gone."""

    client_id: str
    name: str
    is_server: bool


class Wills:
    """By client id; `due` are those whose delay runs."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._set: dict[str, StoredWill] = {}
        self._due: dict[str, StoredWill] = {}

    def load(self, wills: list[StoredWill], now_ms: int, expiries: dict[str, int | None]) -> None:
        """At the start: every will is due; a session that has ended, or will before the delay, brings it forward."""
        for will in wills:
            delay = will.delay_s if will.client_id in expiries else 0
            expiry = expiries.get(will.client_id)
            if expiry is not None:
                delay = min(delay, expiry)
            self._delay(will, now_ms + delay * 1000)

    def set(self, session: Session, will: Will | None) -> None:
        """At CONNECT: its own will in place of whatever was there."""
        client_id = session.client_id
        known = self._due.pop(client_id, None) or self._set.pop(client_id, None)
        if will is None:
            if known is not None:
                self._broker.journal.will(client_id, None)
            return
        stored = StoredWill(
            client_id,
            session.name,
            session.is_server,
            will.topic,
            will.payload,
            packed(will.properties),
            will.qos,
            will.retain,
            will.delay,
            None,
        )
        self._set[client_id] = stored
        self._broker.journal.will(client_id, stored)

    def clear(self, client_id: str) -> None:
        """The client said goodbye, or is back."""
        if (self._set.pop(client_id, None) or self._due.pop(client_id, None)) is not None:
            self._broker.journal.will(client_id, None)

    def orphaned(self, client_id: str, expiry: int | None) -> None:
        """The client is gone without a word; its session lasts for `expiry` seconds, None for ever."""
        will = self._set.pop(client_id, None)
        if will is None:
            return
        delay = will.delay_s if expiry is None else min(will.delay_s, expiry)
        if delay:
            self._delay(will, self._broker.clock.now_ms() + delay * 1000)
        else:
            self._publish(will)

    def session_ended(self, client_id: str) -> None:
        """A will that waits is published when its session ends, whatever is left of the delay [MQTT-3.1.3-9]."""
        will = self._due.pop(client_id, None)
        if will is not None:
            self._publish(will)

    def keep(self, client_id: str) -> None:
        """The server stops: the will stays as it is, and is due after the restart."""
        self._set.pop(client_id, None)

    def look(self, now_ms: int) -> None:
        """Publishes what is due."""
        for client_id, will in list(self._due.items()):
            if will.due_ms is not None and will.due_ms <= now_ms:
                del self._due[client_id]
                self._publish(will)

    def _delay(self, will: StoredWill, due_ms: int) -> None:
        will = msgspec.structs.replace(will, due_ms=due_ms)
        self._due[will.client_id] = will
        self._broker.journal.will(will.client_id, will)

    def _publish(self, will: StoredWill) -> None:
        broker = self._broker
        testator = Testator(will.client_id, will.owner, will.is_server)
        broker.journal.will(will.client_id, None)
        if broker.ask(testator, Access.PUBLISH, will.topic) is not True:
            log.warning("will_not_allowed", client=will.client_id, topic=will.topic)
            return
        properties = unpacked(will.properties)
        expires_ms = None
        if properties is not None and properties.message_expiry is not None:
            expires_ms = broker.clock.now_ms() + properties.message_expiry * 1000
        message = Message(will.topic, will.payload, will.qos, will.retain, properties, expires_ms)
        broker.publish_will(message, testator)
