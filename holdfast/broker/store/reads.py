"""What the broker reads back: everything but the queues at its start, a part of a queue when a client comes for it."""

from __future__ import annotations

import msgspec

from holdfast.broker.store.rows import (
    Length,
    StoredMessage,
    StoredRetained,
    StoredSession,
    StoredSubscription,
    StoredWill,
)
from holdfast.store import Query, Snapshot

PAGE = 1_000

_SESSION = (
    "SELECT id, client_id, owner, is_server, version, expiry_s, created_ms, disconnected_ms, sent"
    " FROM broker_session"
)
SESSIONS = Query(StoredSession, f"{_SESSION} WHERE id > :above ORDER BY id LIMIT :limit")
SESSION_BY_KEY = Query(StoredSession, f"{_SESSION} WHERE key = :key")
SUBSCRIPTIONS = Query(
    StoredSubscription,
    "SELECT session_id, filter, qos, no_local, retain_as_published, identifier FROM broker_subscription"
    " WHERE session_id > :above AND session_id <= :to ORDER BY session_id, key",
)
INBOUND = Query(
    tuple[int, int],
    "SELECT session_id, packet_id FROM broker_inbound WHERE session_id > :above AND session_id <= :to"
    " ORDER BY session_id, packet_id",
)
LENGTHS = Query(
    Length,
    """SELECT session_id, SUM(CASE WHEN replay THEN 0 ELSE 1 END),
        CAST(SUM(CASE WHEN replay THEN 0 ELSE size END) AS BIGINT), SUM(CASE WHEN replay THEN 1 ELSE 0 END), MAX(number)
    FROM broker_queue WHERE session_id > :above AND session_id <= :to
        AND session_id IN (SELECT id FROM broker_session) GROUP BY session_id""",
)
RETAINED = Query(
    StoredRetained,
    """SELECT r.message_id, r.qos, r.stored_ms, r.expires_ms, m.topic, m.payload, m.properties
    FROM broker_retained r JOIN broker_message m ON m.id = r.message_id
    WHERE r.message_id > :above ORDER BY r.message_id LIMIT :limit""",
)
WILLS = Query(
    StoredWill,
    "SELECT client_id, owner, is_server, topic, payload, properties, qos, retain, delay_s, due_ms FROM broker_will",
)
COLUMNS = """SELECT q.number, q.qos, q.retain, q.released, q.replay, q.expires_ms, q.identifiers, q.share,
    q.message_id, COALESCE(q.topic, m.topic), COALESCE(q.payload, m.payload),
    CASE WHEN q.message_id IS NULL THEN q.properties ELSE m.properties END
    FROM broker_queue q LEFT JOIN broker_message m ON m.id = q.message_id"""
QUEUE = Query(
    StoredMessage,
    f"{COLUMNS} WHERE q.session_id = :session_id AND q.number > :above AND q.number <= :to ORDER BY q.number",
)
SIZES = Query(
    tuple[int, int],
    "SELECT number, size FROM broker_queue WHERE session_id = :session_id AND number > :above"
    " ORDER BY number LIMIT :limit",
)
GONE = Query(tuple[int, int], "SELECT session_id, sent FROM broker_gone ORDER BY session_id")
BATCH = Query(int, "SELECT batch FROM broker_state WHERE id = 1")
BEAT = Query(int, "SELECT beat_ms FROM broker_state WHERE id = 1")
HIGHEST_MESSAGE = Query(int, "SELECT COALESCE(MAX(id), 0) FROM broker_message")
HIGHEST_SESSION = Query(
    int,
    """SELECT COALESCE(MAX(id), 0) FROM (SELECT MAX(id) AS id FROM broker_session
    UNION ALL SELECT MAX(session_id) AS id FROM broker_gone
    UNION ALL SELECT MAX(session_id) AS id FROM broker_queue) ids""",
)


class Beginnings(msgspec.Struct, frozen=True):
    """Where the counters stand."""

    batch: int
    beat_ms: int
    message_id: int
    session_id: int


def beginnings(view: Snapshot) -> Beginnings:
    return Beginnings(view.one(BATCH), view.one(BEAT), view.one(HIGHEST_MESSAGE), view.one(HIGHEST_SESSION))


class SessionPage(msgspec.Struct, frozen=True):
    """Some sessions with all that is theirs but their queues."""

    sessions: list[StoredSession]
    subscriptions: list[StoredSubscription]
    inbound: list[tuple[int, int]]
    lengths: list[Length]


def session_page(view: Snapshot, above: int, limit: int = PAGE) -> SessionPage:
    sessions = view.rows(SESSIONS, above=above, limit=limit)
    if not sessions:
        return SessionPage([], [], [], [])
    to = sessions[-1].id
    return SessionPage(
        sessions,
        view.rows(SUBSCRIPTIONS, above=above, to=to),
        view.rows(INBOUND, above=above, to=to),
        view.rows(LENGTHS, above=above, to=to),
    )


def retained_page(view: Snapshot, above: int, limit: int = PAGE) -> list[StoredRetained]:
    return view.rows(RETAINED, above=above, limit=limit)


def wills(view: Snapshot) -> list[StoredWill]:
    return view.rows(WILLS)


def gone(view: Snapshot) -> list[tuple[int, int]]:
    return view.rows(GONE)


def queue_part(
    view: Snapshot, session_id: int, above: int, limit: int, size: int
) -> tuple[list[StoredMessage], bool]:
    """The messages behind number `above`: at most `limit`, and of about `size` bytes (but one at least). True when
    there are no others."""
    sizes = view.rows(SIZES, session_id=session_id, above=above, limit=limit)
    to = above
    is_last = len(sizes) < limit
    for number, bytes_of in sizes:
        if size <= 0:
            is_last = False
            break
        size -= bytes_of
        to = number
    if to == above:
        return [], is_last
    return view.rows(QUEUE, session_id=session_id, above=above, to=to), is_last
