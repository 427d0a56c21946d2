"""The log of a space: one row per entity, moved to the end by each change. Written under the space's lock."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.feed.space import Change, Space
from holdfast.store import Query, Statement, Transaction

PUT = Query(
    int,
    """
    INSERT INTO feed_log (space, seq, pos, cseq, kind, entity, fresh, died_ms)
    VALUES (:space, :seq, :pos, :cseq, :kind, :entity, TRUE, :died_ms)
    ON CONFLICT (entity, kind, space) DO UPDATE SET seq = excluded.seq, pos = excluded.pos,
        fresh = feed_log.died_ms IS NOT NULL, died_ms = excluded.died_ms
    RETURNING cseq
    """,
)
# left to itself, SQLite reads the whole log of the space and sifts it by the entities
KNOWN = Query(
    tuple[int, str],
    """
    SELECT kind, entity FROM feed_log
    --sqlite: INDEXED BY feed_log_entity
    WHERE entity = ANY(:entities) AND space = :space
    """,
)
# `rows` is JSON, [[seq, pos, cseq, kind, entity, died_ms], …]: many rows, one statement
ADD_MANY = Statement(
    """
    INSERT INTO feed_log (space, seq, pos, cseq, kind, entity, fresh, died_ms)
    SELECT :space, CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), CAST(r.value ->> 2 AS BIGINT),
        CAST(r.value ->> 3 AS SMALLINT), r.value ->> 4, TRUE, CAST(r.value ->> 5 AS BIGINT)
    --postgresql: FROM jsonb_array_elements(CAST(:rows AS jsonb)) AS r(value)
    --sqlite: FROM json_each(:rows) AS r
    """
)
MOVE_MANY = Statement(
    """
    UPDATE feed_log SET seq = CAST(r.value ->> 0 AS BIGINT), pos = CAST(r.value ->> 1 AS BIGINT),
        fresh = feed_log.died_ms IS NOT NULL, died_ms = CAST(r.value ->> 5 AS BIGINT)
    --postgresql: FROM jsonb_array_elements(CAST(:rows AS jsonb)) AS r(value)
    --sqlite: FROM json_each(:rows) AS r
    WHERE feed_log.entity = r.value ->> 4 AND feed_log.kind = CAST(r.value ->> 3 AS SMALLINT)
        AND feed_log.space = :space
    """
)

Row = tuple[int, int, int, int, str, int | None]


def append(tx: Transaction, space: Space, changes: Sequence[Change], pos: int, now_ms: int) -> int:
    """Puts distinct entities at the end of the log, from `pos` on; answers how many of them are new."""
    if len(changes) > 1:
        return _append_many(tx, space, changes, pos, now_ms)
    (change,) = changes
    cseq = tx.one(
        PUT,
        space=space.key,
        seq=space.seq + 1,
        pos=pos,
        cseq=space.cseq + 1,
        kind=change.kind,
        entity=change.entity,
        died_ms=now_ms if change.now is None else None,
    )
    return int(cseq > space.cseq)


def _append_many(tx: Transaction, space: Space, changes: Sequence[Change], pos: int, now_ms: int) -> int:
    known = set(tx.rows(KNOWN, entities=[change.entity for change in changes], space=space.key))
    added: list[Row] = []
    moved: list[Row] = []
    cseq = space.cseq
    for n, change in enumerate(changes):
        died_ms = now_ms if change.now is None else None
        if (change.kind, change.entity) in known:
            moved.append((space.seq + 1 + n, pos + n, 0, change.kind, change.entity, died_ms))
        else:
            cseq += 1
            added.append((space.seq + 1 + n, pos + n, cseq, change.kind, change.entity, died_ms))
    for statement, rows in ((MOVE_MANY, moved), (ADD_MANY, added)):
        if rows:
            tx.execute(statement, space=space.key, rows=msgspec.json.encode(rows).decode())
    return cseq - space.cseq
