"""The SQL that writes a batch. Each statement may run twice and leaves the same rows.

A row's values come in the order in which the parameters appear: see `Statement.names`.
"""

from __future__ import annotations

from holdfast.broker.store.rows import Length
from holdfast.store import Query, Statement

LAST_BATCH = Query(int, "SELECT batch FROM broker_state WHERE id = 1 FOR UPDATE")
SET_BATCH = Statement("UPDATE broker_state SET batch = :batch, beat_ms = :now WHERE id = 1")

END_SESSION = Statement("DELETE FROM broker_session WHERE id = :session_id")
END_SUBSCRIPTIONS = Statement("DELETE FROM broker_subscription WHERE session_id = :session_id")
END_INBOUND = Statement("DELETE FROM broker_inbound WHERE session_id = :session_id")
END_QUEUE_LATER = Statement(
    "INSERT INTO broker_gone (session_id, sent) VALUES (:session_id, :sent) ON CONFLICT (session_id) DO NOTHING"
)

KEEP_SESSION = Statement(
    """INSERT INTO broker_session (id, key, client_id, owner, is_server, version, expiry_s, created_ms,
        disconnected_ms, sent)
    VALUES (:id, :key, :client_id, :owner, :is_server, :version, :expiry_s, :created_ms, :disconnected_ms, :sent)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, expiry_s = excluded.expiry_s,
        is_server = excluded.is_server, disconnected_ms = excluded.disconnected_ms, sent = excluded.sent"""
)
MARK_SENT = Statement("UPDATE broker_session SET sent = :sent WHERE id = :id AND sent < :sent")

SUBSCRIBE = Statement(
    """INSERT INTO broker_subscription (session_id, key, filter, qos, no_local, retain_as_published, identifier)
    VALUES (:session_id, :key, :filter, :qos, :no_local, :retain_as_published, :identifier)
    ON CONFLICT (session_id, key) DO UPDATE SET qos = excluded.qos, no_local = excluded.no_local,
        retain_as_published = excluded.retain_as_published, identifier = excluded.identifier"""
)
UNSUBSCRIBE = Statement("DELETE FROM broker_subscription WHERE session_id = :session_id AND key = :key")

KEEP_MESSAGE = Statement(
    "INSERT INTO broker_message (id, topic, payload, properties) VALUES (:id, :topic, :payload, :properties)"
    " ON CONFLICT (id) DO NOTHING"
)
ENQUEUE = Statement(
    """INSERT INTO broker_queue (session_id, number, qos, retain, released, replay, size, expires_ms, identifiers,
        share, message_id, topic, payload, properties)
    VALUES (:session_id, :number, :qos, :retain, :released, :replay, :size, :expires_ms, :identifiers,
        :share, :message_id, :topic, :payload, :properties)
    ON CONFLICT (session_id, number) DO NOTHING"""
)
RELEASE = Statement(
    "UPDATE broker_queue SET released = TRUE WHERE session_id = :session_id AND number = :number"
)
REMOVE_BELOW = Statement("DELETE FROM broker_queue WHERE session_id = :session_id AND number < :number")
REMOVE = Statement("DELETE FROM broker_queue WHERE session_id = :session_id AND number = :number")
FORGET_MESSAGE = Statement(
    """DELETE FROM broker_message WHERE id = :id
    AND NOT EXISTS (SELECT 1 FROM broker_queue q WHERE q.message_id = broker_message.id)
    AND NOT EXISTS (SELECT 1 FROM broker_retained r WHERE r.message_id = broker_message.id)"""
)

RECEIVE_ID = Statement(
    "INSERT INTO broker_inbound (session_id, packet_id) VALUES (:session_id, :packet_id)"
    " ON CONFLICT (session_id, packet_id) DO NOTHING"
)
RELEASE_ID = Statement("DELETE FROM broker_inbound WHERE session_id = :session_id AND packet_id = :packet_id")

RETAIN = Statement(
    """INSERT INTO broker_retained (key, message_id, qos, stored_ms, expires_ms)
    VALUES (:key, :message_id, :qos, :stored_ms, :expires_ms)
    ON CONFLICT (key) DO UPDATE SET message_id = excluded.message_id, qos = excluded.qos,
        stored_ms = excluded.stored_ms, expires_ms = excluded.expires_ms"""
)
UNRETAIN = Statement("DELETE FROM broker_retained WHERE key = :key")

KEEP_WILL = Statement(
    """INSERT INTO broker_will (key, client_id, owner, is_server, topic, payload, properties, qos, retain, delay_s,
        due_ms)
    VALUES (:key, :client_id, :owner, :is_server, :topic, :payload, :properties, :qos, :retain, :delay_s, :due_ms)
    ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, is_server = excluded.is_server,
        topic = excluded.topic, payload = excluded.payload, properties = excluded.properties,
        qos = excluded.qos, retain = excluded.retain, delay_s = excluded.delay_s, due_ms = excluded.due_ms"""
)
FORGET_WILL = Statement("DELETE FROM broker_will WHERE key = :key")

OLDEST = Query(
    tuple[int, int, int],
    """SELECT number, CASE WHEN replay THEN -1 ELSE size END, COALESCE(message_id, 0) FROM broker_queue
    WHERE session_id = :session_id AND number > :above AND NOT released ORDER BY number LIMIT :limit""",
)
LENGTH = Query(
    Length,
    """SELECT session_id, SUM(CASE WHEN replay THEN 0 ELSE 1 END),
        CAST(SUM(CASE WHEN replay THEN 0 ELSE size END) AS BIGINT), SUM(CASE WHEN replay THEN 1 ELSE 0 END), MAX(number)
    FROM broker_queue WHERE session_id = :session_id GROUP BY session_id""",
)
