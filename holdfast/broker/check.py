"""What `holdfast check` proves of this room: generators of sentences, one per problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.broker.session import LARGEST_ID
from holdfast.broker.store.rows import key_of
from holdfast.broker.topics import shared_filter_fault, split_shared, topic_filter_fault
from holdfast.store import Query, Snapshot

MOST: Final = 100  # problems of one kind; nobody reads more

_WITHOUT_MESSAGE = Query(
    tuple[int, int],
    """SELECT q.session_id, q.number FROM broker_queue q WHERE q.message_id IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM broker_message m WHERE m.id = q.message_id) LIMIT :most""",
)
_RETAINED_WITHOUT_MESSAGE = Query(
    str,
    """SELECT r.key FROM broker_retained r
    WHERE NOT EXISTS (SELECT 1 FROM broker_message m WHERE m.id = r.message_id) LIMIT :most""",
)
_UNNEEDED = Query(
    int,
    """SELECT m.id FROM broker_message m
    WHERE NOT EXISTS (SELECT 1 FROM broker_queue q WHERE q.message_id = m.id)
    AND NOT EXISTS (SELECT 1 FROM broker_retained r WHERE r.message_id = m.id) LIMIT :most""",
)
_WITHOUT_SESSION = Query(
    tuple[str, int],
    """SELECT name, session_id FROM (
        SELECT 'a queue' AS name, session_id FROM broker_queue
            WHERE session_id NOT IN (SELECT session_id FROM broker_gone)
        UNION SELECT 'a subscription' AS name, session_id FROM broker_subscription
        UNION SELECT 'a packet id' AS name, session_id FROM broker_inbound) found
    WHERE session_id NOT IN (SELECT id FROM broker_session) LIMIT :most""",
)
_GONE_AND_THERE = Query(
    int, "SELECT g.session_id FROM broker_gone g JOIN broker_session s ON s.id = g.session_id LIMIT :most"
)
_RELEASED = Query(
    tuple[int, int],
    """SELECT q.session_id, q.number FROM broker_queue q JOIN broker_session s ON s.id = q.session_id
    WHERE q.released AND (q.qos <> 2 OR q.number > s.sent) LIMIT :most""",
)
_SHARING_IDS = Query(
    tuple[int, int],
    """SELECT q.session_id, COUNT(*) FROM broker_queue q JOIN broker_session s ON s.id = q.session_id
    WHERE q.number <= s.sent GROUP BY q.session_id HAVING MAX(q.number) - MIN(q.number) >= :ids LIMIT :most""",
)
_KEYS = Query(
    tuple[str, str, str],
    """SELECT kind, key, name FROM (
        SELECT 'session' AS kind, key, client_id AS name FROM broker_session
        UNION ALL SELECT 'subscription' AS kind, key, filter AS name FROM broker_subscription
        UNION ALL SELECT 'will' AS kind, key, client_id AS name FROM broker_will
        UNION ALL SELECT 'retained message' AS kind, r.key, m.topic AS name
            FROM broker_retained r JOIN broker_message m ON m.id = r.message_id) named
    WHERE key <> name""",
)
_FILTERS = Query(tuple[int, str], "SELECT session_id, filter FROM broker_subscription")
_QOS = Query(
    tuple[str, int],
    """SELECT name, qos FROM (
        SELECT 'a queue' AS name, qos FROM broker_queue WHERE qos NOT IN (1, 2)
        UNION ALL SELECT 'a subscription' AS name, qos FROM broker_subscription WHERE qos NOT IN (0, 1, 2)
        UNION ALL SELECT 'a retained message' AS name, qos FROM broker_retained WHERE qos NOT IN (0, 1, 2)
        UNION ALL SELECT 'a will' AS name, qos FROM broker_will WHERE qos NOT IN (0, 1, 2)) wrong LIMIT :most""",
)


def problems(view: Snapshot) -> Iterator[str]:
    yield from _messages(view)
    yield from _sessions(view)
    yield from _names(view)


def _messages(view: Snapshot) -> Iterator[str]:
    for session_id, number in view.rows(_WITHOUT_MESSAGE, most=MOST):
        yield f"broker: message {number} in the queue of session {session_id} is not there"
    for key in view.rows(_RETAINED_WITHOUT_MESSAGE, most=MOST):
        yield f"broker: the retained message of {key!r} is not there"
    for message_id in view.rows(_UNNEEDED, most=MOST):
        yield f"broker: message {message_id} is in no queue and not retained"
    for name, qos in view.rows(_QOS, most=MOST):
        yield f"broker: {name} has QoS {qos}"


def _sessions(view: Snapshot) -> Iterator[str]:
    for name, session_id in view.rows(_WITHOUT_SESSION, most=MOST):
        yield f"broker: {name} belongs to session {session_id}, which is not there"
    for session_id in view.rows(_GONE_AND_THERE, most=MOST):
        yield f"broker: session {session_id} has ended and is there"
    for session_id, number in view.rows(_RELEASED, most=MOST):
        yield f"broker: message {number} of session {session_id} is released and cannot be"
    for session_id, count in view.rows(_SHARING_IDS, ids=LARGEST_ID, most=MOST):
        yield f"broker: among the {count} sent messages of session {session_id} two have one packet id"


def _names(view: Snapshot) -> Iterator[str]:
    for kind, key, name in view.rows(_KEYS):
        if key_of(name) != key:
            yield f"broker: a {kind} is kept under another name than its own: {key!r}"
    for session_id, name in view.rows(_FILTERS):
        shared = split_shared(name)
        fault = topic_filter_fault(name) if shared is None else shared_filter_fault(name)
        if fault is not None:
            yield f"broker: session {session_id} has a subscription that is no topic filter: {name!r}"
