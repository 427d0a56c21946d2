"""Writes one batch: the broker's only way to change its rows while it serves, but for the removal of what is left over.

A batch whose commit had an unknown outcome is applied again: its number tells whether it is there already.
"""

from __future__ import annotations

from holdfast.broker.store import statements as sql
from holdfast.broker.store.rows import Changes, Row, Trim, Trimmed
from holdfast.store import Statement, Transaction

STEP = 200


def apply(tx: Transaction, changes: Changes) -> list[Trimmed]:
    """Answers what the trims took out."""
    if tx.one(sql.LAST_BATCH) >= changes.batch:
        return [_rest(tx, trim) for trim in changes.trims]
    tx.execute(sql.SET_BATCH, batch=changes.batch, now=changes.now_ms)
    for statement, rows in _in_order(changes):
        if rows:
            tx.execute_many(statement, rows)
    unreferenced: set[Row] = set(changes.unreferenced)
    trimmed = [_trim(tx, trim, unreferenced) for trim in changes.trims]
    if unreferenced:
        tx.execute_many(sql.FORGET_MESSAGE, sorted(unreferenced))
    return trimmed


def _in_order(changes: Changes) -> list[tuple[Statement, list[Row]]]:
    """What ends comes before what begins: a client id may do both in one batch. Messages come before their queues,
    and what leaves a queue after what enters it."""
    return [
        (sql.END_SESSION, changes.gone),
        (sql.END_SUBSCRIPTIONS, changes.gone),
        (sql.END_INBOUND, changes.gone),
        (sql.END_QUEUE_LATER, changes.left_behind),
        (sql.KEEP_SESSION, changes.sessions),
        (sql.UNSUBSCRIBE, changes.unsubscriptions),
        (sql.SUBSCRIBE, changes.subscriptions),
        (sql.KEEP_MESSAGE, changes.messages),
        (sql.ENQUEUE, changes.queue),
        (sql.RELEASE, changes.released),
        (sql.MARK_SENT, changes.marks),
        (sql.REMOVE_BELOW, changes.removed_below),
        (sql.REMOVE, changes.removed),
        (sql.RELEASE_ID, changes.released_inbound),
        (sql.RECEIVE_ID, changes.inbound),
        (sql.UNRETAIN, changes.unretained),
        (sql.RETAIN, changes.retained),
        (sql.FORGET_WILL, changes.unwilled),
        (sql.KEEP_WILL, changes.wills),
    ]


def _rest(tx: Transaction, trim: Trim) -> Trimmed:
    length = tx.row(sql.LENGTH, session_id=trim.session_id)
    if length is None:
        return Trimmed(trim.session_id, 0, 0, is_rest=True)
    return Trimmed(trim.session_id, length.count, length.size, is_rest=True)


def _trim(tx: Transaction, trim: Trim, unreferenced: set[Row]) -> Trimmed:
    count = size = 0
    above = trim.sent
    while count < trim.count or size < trim.size:
        oldest = tx.rows(sql.OLDEST, session_id=trim.session_id, above=above, limit=STEP)
        doomed: list[Row] = []
        for number, bytes_of, message_id in oldest:
            if count >= trim.count and size >= trim.size:
                break
            above = number
            if bytes_of < 0:
                continue  # replayed retained messages are outside the cap
            doomed.append((trim.session_id, number))
            count += 1
            size += bytes_of
            if message_id:
                unreferenced.add((message_id,))
        tx.execute_many(sql.REMOVE, doomed)
        if len(oldest) < STEP:
            break
    return Trimmed(trim.session_id, count, size)
