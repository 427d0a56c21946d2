"""What ended sessions left behind, removed in turns; what others may still get is read first."""

from __future__ import annotations

from holdfast.broker.store.reads import COLUMNS
from holdfast.broker.store.rows import Row, StoredMessage
from holdfast.broker.store.statements import FORGET_MESSAGE, REMOVE
from holdfast.store import Query, Snapshot, Statement, Transaction

TURN = 1_000

NEXT = Query(
    tuple[int, int],
    "SELECT number, COALESCE(message_id, 0) FROM broker_queue WHERE session_id = :session_id"
    " ORDER BY number LIMIT :limit",
)
PURGED = Statement("DELETE FROM broker_gone WHERE session_id = :session_id")
SHARED = Query(
    StoredMessage,
    f"""{COLUMNS} WHERE q.session_id = :session_id AND q.number > :above AND q.share IS NOT NULL
    AND (q.qos = 1 OR q.number > :sent) ORDER BY q.number LIMIT :limit""",
)
EXPIRED = Query(
    tuple[int, int, int, int],
    """SELECT q.session_id, q.number, q.size, COALESCE(q.message_id, 0)
    FROM broker_queue q JOIN broker_session s ON s.id = q.session_id
    WHERE q.expires_ms <= :now AND q.number > s.sent AND s.disconnected_ms IS NOT NULL AND NOT q.replay
    ORDER BY q.expires_ms LIMIT :limit""",
)


def purge(tx: Transaction, session_id: int) -> int:
    """One turn: answers how many messages it removed, 0 when the session has left nothing any more."""
    rows = tx.rows(NEXT, session_id=session_id, limit=TURN)
    tx.execute_many(REMOVE, [(session_id, number) for number, _ in rows])
    messages: list[Row] = [(message_id,) for message_id in sorted({found for _, found in rows if found})]
    if messages:
        tx.execute_many(FORGET_MESSAGE, messages)
    if not rows:
        tx.execute(PURGED, session_id=session_id)
    return len(rows)


def shared_part(
    view: Snapshot, session_id: int, sent: int, above: int, limit: int = 200
) -> list[StoredMessage]:
    """Messages that another member of a shared subscription may get [MQTT-4.8.2-5]."""
    return view.rows(SHARED, session_id=session_id, sent=sent, above=above, limit=limit)


def expired(view: Snapshot, now_ms: int) -> list[tuple[int, int, int, int]]:
    """Messages that nobody will get any more, in the queues of clients that are away: session, number, size, message."""
    return view.rows(EXPIRED, now=now_ms, limit=TURN)
