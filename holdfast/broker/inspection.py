"""What one may see of the broker from outside: plain values, made when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.broker.message import Message
from holdfast.broker.session import WINDOW_BYTES
from holdfast.broker.session.session import Session
from holdfast.broker.store import reads
from holdfast.broker.store.rows import StoredMessage

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker


class SubscriptionInfo(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    filter: str
    """As it was subscribed, `$share/…/` included."""
    qos: int
    no_local: bool
    retain_as_published: bool
    identifier: int
    """0 when the client gave none."""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    client_id: str
    user: str
    connected: bool
    address: str | None
    """Of the connection, when there is one."""
    version: int
    persistent: bool
    since_ms: int
    """Connected, or disconnected, since then."""
    expires_ms: int | None
    """When the session ends if its client stays away; None while connected, and for one that never ends."""
    subscriptions: int
    inflight: int
    """Messages sent to the client and not acknowledged by it."""
    queued: int
    """Messages that wait for the client; those in flight not among them."""
    queued_bytes: int
    dropped: int
    """Messages dropped for this session since the process started."""


class RetainedInfo(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    size: int
    qos: int
    stored_ms: int
    expires_ms: int | None


class QueuedInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A message in a session's queue: never its payload."""

    number: int
    topic: str
    size: int
    qos: int
    retain: bool
    state: str
    """queued, sent or released."""
    expires_ms: int | None


def of_session(session: Session) -> SessionInfo:
    outgoing = session.outgoing
    connection = session.connection
    return SessionInfo(
        client_id=session.client_id,
        user=session.name,
        connected=session.peer is not None,
        address=connection.transport.address if connection is not None else None,
        version=session.version,
        persistent=session.persistent,
        since_ms=session.since_ms,
        expires_ms=session.expires_ms(),
        subscriptions=len(session.subscriptions),
        inflight=len(outgoing.inflight),
        queued=outgoing.holds() - len(outgoing.inflight),
        queued_bytes=outgoing.size,
        dropped=session.dropped,
    )


def of_subscriptions(session: Session) -> Iterator[SubscriptionInfo]:
    for name, grant in list(session.subscriptions.items()):
        yield SubscriptionInfo(
            client_id=session.client_id,
            filter=name,
            qos=grant.qos,
            no_local=grant.no_local,
            retain_as_published=grant.retain_as_published,
            identifier=grant.identifier,
        )


def of_retained(message: Message) -> RetainedInfo:
    return RetainedInfo(
        topic=message.topic,
        size=len(message.payload),
        qos=message.qos,
        stored_ms=message.stored_ms,
        expires_ms=message.expires_ms,
    )


async def queue_of(broker: Broker, session: Session, limit: int) -> list[QueuedInfo]:
    outgoing = session.outgoing
    here = [*outgoing.inflight.values(), *outgoing.waiting][:limit]
    found = [
        QueuedInfo(
            number=entry.number,
            topic=entry.message.topic,
            size=len(entry.message.payload),
            qos=entry.qos,
            retain=entry.retain,
            state=entry.state.name.lower(),
            expires_ms=entry.message.expires_ms,
        )
        for entry in here
    ]
    if outgoing.spilled and len(found) < limit:
        await broker.journal.written()
        part, _ = await broker.db.read(
            reads.queue_part, session.id, outgoing.loaded, limit - len(found), WINDOW_BYTES
        )
        found += [of_stored(stored, outgoing.sent) for stored in part]
    return found


def of_stored(stored: StoredMessage, sent: int) -> QueuedInfo:
    state = "queued"
    if stored.released:
        state = "released"
    elif stored.number <= sent:
        state = "sent"
    return QueuedInfo(
        number=stored.number,
        topic=stored.topic,
        size=len(stored.payload),
        qos=stored.qos,
        retain=stored.retain,
        state=state,
        expires_ms=stored.expires_ms,
    )
