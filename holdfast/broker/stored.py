"""A stopped broker, as its store shows it: the same values that `inspection` gives of a running one. Reads only.

What was only in memory is not here: sessions that do not last, what was dropped. Nothing is in flight to a client that
is away; what was sent to it before shows as `sent` in its queue.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from holdfast.broker.beginning import BEAT_SECONDS
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo, of_stored
from holdfast.broker.store import reads
from holdfast.broker.store.rows import StoredSubscription, key_of
from holdfast.broker.topics.matching import matches
from holdfast.store import Query, Snapshot

PAGE = 500


class _Session(Struct, frozen=True):
    id: int
    key: str
    client_id: str
    owner: str
    version: int
    expiry_s: int | None
    disconnected_ms: int | None
    sent: int
    subscriptions: int
    queued: int
    queued_bytes: int


_SESSION = """SELECT s.id, s.key, s.client_id, s.owner, s.version, s.expiry_s, s.disconnected_ms, s.sent,
    (SELECT COUNT(*) FROM broker_subscription b WHERE b.session_id = s.id),
    (SELECT COUNT(*) FROM broker_queue q WHERE q.session_id = s.id),
    (SELECT CAST(COALESCE(SUM(q.size), 0) AS BIGINT) FROM broker_queue q WHERE q.session_id = s.id)
    FROM broker_session s"""
SESSIONS = Query(_Session, f"{_SESSION} WHERE s.key > :after ORDER BY s.key LIMIT :limit")
SESSION = Query(_Session, f"{_SESSION} WHERE s.key = :key")
SUBSCRIPTIONS = Query(
    StoredSubscription,
    "SELECT session_id, filter, qos, no_local, retain_as_published, identifier FROM broker_subscription"
    " WHERE session_id = :session_id ORDER BY filter",
)


class _Retained(Struct, frozen=True):
    message_id: int
    topic: str
    size: int
    qos: int
    stored_ms: int
    expires_ms: int | None


RETAINED = Query(
    _Retained,
    """SELECT r.message_id, m.topic, LENGTH(m.payload), r.qos, r.stored_ms, r.expires_ms
    FROM broker_retained r JOIN broker_message m ON m.id = r.message_id
    WHERE r.message_id > :above ORDER BY r.message_id LIMIT :limit""",
)


def sessions(view: Snapshot) -> Iterator[SessionInfo]:
    """By client id."""
    cut_off_ms = _cut_off_ms(view)
    after = ""
    while page := view.rows(SESSIONS, after=after, limit=PAGE):
        for stored in page:
            yield _info(stored, cut_off_ms)
        after = page[-1].key


def session(view: Snapshot, client_id: str) -> SessionInfo | None:
    stored = view.row(SESSION, key=key_of(client_id))
    return None if stored is None else _info(stored, _cut_off_ms(view))


def subscriptions(view: Snapshot, client_id: str | None = None) -> Iterator[SubscriptionInfo]:
    if client_id is not None:
        stored = view.row(SESSION, key=key_of(client_id))
        yield from () if stored is None else _subscriptions(view, stored)
        return
    after = ""
    while page := view.rows(SESSIONS, after=after, limit=PAGE):
        for stored in page:
            yield from _subscriptions(view, stored)
        after = page[-1].key


def retained(view: Snapshot, topic_filter: str = "#") -> Iterator[RetainedInfo]:
    """In the order in which they were stored."""
    above = 0
    while page := view.rows(RETAINED, above=above, limit=PAGE):
        for stored in page:
            if matches(topic_filter, stored.topic):
                yield RetainedInfo(
                    topic=stored.topic,
                    size=stored.size,
                    qos=stored.qos,
                    stored_ms=stored.stored_ms,
                    expires_ms=stored.expires_ms,
                )
        above = page[-1].message_id


def queue(view: Snapshot, client_id: str, limit: int) -> list[QueuedInfo]:
    """The oldest messages first."""
    stored = view.row(SESSION, key=key_of(client_id))
    if stored is None:
        return []
    part, _ = reads.queue_part(view, stored.id, 0, limit, 2**62)
    return [of_stored(message, stored.sent) for message in part]


def _cut_off_ms(view: Snapshot) -> int:
    """Since when a client that was connected counts as away: as the broker will say when it starts."""
    return view.one(reads.BEAT) + round(BEAT_SECONDS * 1000)


def _info(stored: _Session, cut_off_ms: int) -> SessionInfo:
    since_ms = cut_off_ms if stored.disconnected_ms is None else stored.disconnected_ms
    return SessionInfo(
        client_id=stored.client_id,
        user=stored.owner,
        connected=False,
        address=None,
        version=stored.version,
        persistent=True,
        since_ms=since_ms,
        expires_ms=None if stored.expiry_s is None else since_ms + stored.expiry_s * 1000,
        subscriptions=stored.subscriptions,
        inflight=0,
        queued=stored.queued,
        queued_bytes=stored.queued_bytes,
        dropped=0,
    )


def _subscriptions(view: Snapshot, stored: _Session) -> Iterator[SubscriptionInfo]:
    for one in view.rows(SUBSCRIPTIONS, session_id=stored.id):
        yield SubscriptionInfo(
            client_id=stored.client_id,
            filter=one.filter,
            qos=one.qos,
            no_local=one.no_local,
            retain_as_published=one.retain_as_published,
            identifier=one.identifier,
        )
