"""The broker: everything between a connection's bytes and the store.

broker = Broker(db, hooks, clock, settings.broker, metrics)
await broker.start()                          # sessions, subscriptions, retained messages, wills from the store
peer = broker.connect(transport)              # a door, once a connection can carry bytes
peer.receive_data(data)
await broker.publish("state/lamp", b"on", qos=1, retain=True)
broker.listen("heji/up/#", listener, takes=True)
await broker.close()                          # DISCONNECT 0x8B to everyone
await broker.stop()                           # the last commit
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import msgspec

from holdfast.broker.counters import Counters
from holdfast.broker.hooks import Hooks, Identity
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.broker.packets import MessageProperties
from holdfast.broker.peer import Peer
from holdfast.broker.transport import Transport
from holdfast.clock import Clock
from holdfast.metrics import Metrics
from holdfast.settings import Broker as BrokerSettings
from holdfast.store import Database


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a listener in this process gets it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: MessageProperties | None
    client_id: str
    user: str
    """The name that the publisher's session belongs to."""
    identity: Identity | None
    """Who published it; None for a will that was kept over a restart."""


Listener = Callable[[Received], Awaitable[None]]


class Listening:
    """Ends with `cancel`."""

    def cancel(self) -> None:
        raise NotImplementedError


class Broker:
    def __init__(
        self, db: Database, hooks: Hooks, clock: Clock, settings: BrokerSettings, metrics: Metrics
    ) -> None:
        self.db = db
        self.hooks = hooks
        self.clock = clock
        self.settings = settings
        self.metrics = metrics
        self.counters = Counters()

    # -- its life

    async def start(self) -> None:
        """Reads the store (migrated with the room "broker") and begins to tick. No door is open yet."""
        raise NotImplementedError

    async def close(self) -> None:
        """Tells every client to go (0x8B) and closes its connection; takes no new one."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Waits for the last commit. The store is still open."""
        raise NotImplementedError

    async def sweep(self) -> int:
        """Ends expired sessions and messages: a chore, every `broker.sweep_interval`. Answers how many."""
        raise NotImplementedError

    # -- for doors

    def connect(self, transport: Transport) -> Peer:
        """A new connection. Above the limits its CONNECT is refused (0x97), or it is aborted at once."""
        raise NotImplementedError

    # -- for the rest of the process

    def send(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 1,
        retain: bool = False,
        properties: MessageProperties | None = None,
    ) -> None:
        """Publishes as the server, at once, and waits for nothing. Retained `$SYS/` topics stay in memory."""
        raise NotImplementedError

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: int = 1,
        retain: bool = False,
        properties: MessageProperties | None = None,
    ) -> None:
        """As `send`, and returns when the message is as safe as a PUBACK would say."""
        raise NotImplementedError

    def listen(self, topic_filter: str, listener: Listener, *, takes: bool = False) -> Listening:
        """Hears what clients publish (and their wills), not what this process does.

        The publisher's PUBACK or PUBREC waits for `listener`; when it raises, the publisher's connection is closed
        so that it sends the message again. One publisher's messages come one after the other. With `takes`, a
        message that the filter matches goes to listeners alone: it is not routed and not retained.
        """
        raise NotImplementedError

    # -- for the operator

    def sessions(self) -> Iterator[SessionInfo]:
        raise NotImplementedError

    def session(self, client_id: str) -> SessionInfo | None:
        raise NotImplementedError

    def subscriptions(self, client_id: str | None = None) -> Iterator[SubscriptionInfo]:
        raise NotImplementedError

    def retained(self, topic_filter: str = "#") -> Iterator[RetainedInfo]:
        """Lazily. `$`-topics only for a filter that begins with `$`."""
        raise NotImplementedError

    async def queue(self, client_id: str, limit: int = 100) -> list[QueuedInfo]:
        """The oldest messages of a session's queue, in flight ones first. Empty for an unknown session."""
        raise NotImplementedError

    async def kick(self, client_id: str) -> bool:
        """Disconnects a client (0x98); its session stays. False when it is not connected."""
        raise NotImplementedError

    async def delete_session(self, client_id: str) -> bool:
        """Disconnects a client and deletes its session. False when there is none."""
        raise NotImplementedError

    async def clear_retained(self, topic: str) -> bool:
        """False when nothing is retained there."""
        raise NotImplementedError

    # -- for $SYS, beside `counters`

    @property
    def connected(self) -> int:
        """Clients connected now."""
        raise NotImplementedError

    @property
    def session_count(self) -> int:
        """Sessions, of clients connected and away."""
        raise NotImplementedError

    @property
    def subscription_count(self) -> int:
        raise NotImplementedError

    @property
    def shared_subscription_count(self) -> int:
        raise NotImplementedError

    @property
    def retained_count(self) -> int:
        raise NotImplementedError

    @property
    def queued_count(self) -> int:
        """Messages of QoS 1 and 2 that are kept for sessions, in flight ones included."""
        raise NotImplementedError

    @property
    def queued_bytes(self) -> int:
        raise NotImplementedError
