"""Removes what is only kept for those who have been away: tombstones, dead links, logs of closed spaces.

By wall time, never by position: positions run ahead of the clock. How far it went is written down with it, so
that a client that was away longer starts over whatever the clock or the setting say later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from holdfast.feed.space import lock_spaces
from holdfast.store import Query, Statement, Transaction

TURN_ROWS = 1_000
GRACE_MS = 24 * 3600 * 1000
"""Kept longer than readers are told: covers a clock that was set back, and a commit that took its time."""

SWEPT = Statement(
    """
    INSERT INTO meta (name, value) VALUES ('feed_swept_ms', :before)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE CAST(meta.value AS BIGINT) < CAST(excluded.value AS BIGINT)
    """
)
OLD_LINKS = Query(
    int,
    "SELECT space FROM feed_link WHERE left_ms < :before ORDER BY left_ms LIMIT :limit",
)
DROP_LINKS = Query(
    int,
    """
    DELETE FROM feed_link WHERE (owner, space) IN
        (SELECT owner, space FROM feed_link WHERE left_ms < :before AND space = ANY(:spaces) LIMIT :limit)
    RETURNING space
    """,
)
OLD_TOMBSTONES = Query(
    int,
    "SELECT space FROM feed_log WHERE died_ms < :before ORDER BY died_ms LIMIT :limit",
)
DROP_TOMBSTONES = Query(
    int,
    """
    DELETE FROM feed_log WHERE (space, seq) IN
        (SELECT space, seq FROM feed_log WHERE died_ms < :before AND space = ANY(:spaces) LIMIT :limit)
    RETURNING space
    """,
)
COUNT_SWEPT = Statement("UPDATE feed_space SET swept = swept + :rows WHERE space = :space")
DESERTED = Query(
    int,
    """
    SELECT space FROM feed_space s
    WHERE closed_ms < :before AND NOT EXISTS (SELECT 1 FROM feed_link l WHERE l.space = s.space)
    ORDER BY closed_ms LIMIT 1
    """,
)
DROP_LOG = Query(
    int,
    """
    DELETE FROM feed_log WHERE (space, seq) IN
        (SELECT space, seq FROM feed_log WHERE space = :space LIMIT :limit)
    RETURNING space
    """,
)
DROP_SPACE = Statement("DELETE FROM feed_space WHERE space = :space")


def sweep(tx: Transaction, now_ms: int, keep_ms: int) -> int:
    """One turn, for `Database.write_in_turns`: removes at most 1,000 rows, answers how many; 0 is done."""
    before = now_ms - keep_ms - GRACE_MS
    parts: tuple[Callable[[Transaction, int], int], ...] = (_links, _tombstones, _deserted)
    for part in parts:
        rows = part(tx, before)
        if rows:
            tx.execute(SWEPT, before=str(before))
            return rows
    return 0


def _links(tx: Transaction, before: int) -> int:
    spaces = _locked(tx, tx.rows(OLD_LINKS, before=before, limit=TURN_ROWS))
    return len(tx.rows(DROP_LINKS, before=before, spaces=spaces, limit=TURN_ROWS)) if spaces else 0


def _tombstones(tx: Transaction, before: int) -> int:
    spaces = _locked(tx, tx.rows(OLD_TOMBSTONES, before=before, limit=TURN_ROWS))
    if not spaces:
        return 0
    dropped = Counter(tx.rows(DROP_TOMBSTONES, before=before, spaces=spaces, limit=TURN_ROWS))
    for space, rows in sorted(dropped.items()):
        tx.execute(COUNT_SWEPT, space=space, rows=rows)
    return dropped.total()


def _deserted(tx: Transaction, before: int) -> int:
    """The log of a closed space that nobody has to be told about any more."""
    spaces = _locked(tx, tx.rows(DESERTED, before=before))
    if not spaces:
        return 0
    (space,) = spaces
    rows = len(tx.rows(DROP_LOG, space=space, limit=TURN_ROWS))
    if rows:
        tx.execute(COUNT_SWEPT, space=space, rows=rows)
        return rows
    return tx.execute(DROP_SPACE, space=space)


def _locked(tx: Transaction, found: Iterable[int]) -> list[int]:
    """Like every writer, the sweep holds a space before it touches what belongs to it."""
    return sorted(lock_spaces(tx, set(found)))
