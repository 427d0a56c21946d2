"""The links between owners and spaces: which part of a log an owner sees, and where. Written under the space's lock.

| state | `inside` | the log's entries appear |
|---|---|---|
| never there | no row | not at all |
| inside | true | with `seq ≤ cut` at `base + seq`, later ones at their `pos` |
| left | false | with `cseq ≤ cut` at `base + cseq`, each as a deletion; swept after its time |
"""

from __future__ import annotations

import msgspec

from holdfast.store import Statement, Transaction

# In the order of owners: two transactions that bring the same newcomers wait for each other in that order, and
# before either has locked a feed.
ENSURE_OWNERS = Statement(
    """
    INSERT INTO feed_owner (owner, last)
    --postgresql: SELECT CAST(r.value AS BIGINT), 0 FROM jsonb_array_elements_text(CAST(:owners AS jsonb)) AS r(value)
    --sqlite: SELECT r.value, 0 FROM json_each(:owners) AS r
    WHERE TRUE ORDER BY 1
    ON CONFLICT (owner) DO NOTHING
    """
)
JOIN = Statement(
    """
    INSERT INTO feed_link (owner, space, inside, base, cut)
    --postgresql: SELECT CAST(r.value AS BIGINT), :space, TRUE, :base, :cut
    --postgresql: FROM jsonb_array_elements_text(CAST(:owners AS jsonb)) AS r(value)
    --sqlite: SELECT r.value, :space, TRUE, :base, :cut FROM json_each(:owners) AS r
    WHERE TRUE
    ON CONFLICT (owner, space) DO UPDATE SET inside = TRUE, base = excluded.base, cut = excluded.cut, left_ms = NULL
    """
)
LEAVE = Statement(
    """
    UPDATE feed_link SET inside = FALSE, base = :base, cut = :cut, left_ms = :left_ms
    WHERE owner = ANY(:owners) AND space = :space
    """
)


def ensure_owners(tx: Transaction, owners: list[int]) -> None:
    tx.execute(ENSURE_OWNERS, owners=_json(owners))


def join(tx: Transaction, space: int, owners: list[int], *, base: int, cut: int) -> None:
    tx.execute(JOIN, owners=_json(owners), space=space, base=base, cut=cut)


def leave(tx: Transaction, space: int, owners: list[int], *, base: int, cut: int, now_ms: int) -> None:
    tx.execute(LEAVE, owners=owners, space=space, base=base, cut=cut, left_ms=now_ms)


def _json(owners: list[int]) -> str:
    return msgspec.json.encode(owners).decode()
