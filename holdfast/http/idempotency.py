"""`Idempotency-Key`: the same POST again gets the first answer, also while the first is under way.

The key is claimed, and the answer stored, in the action's own transaction. A second request with the key waits at
that row (PostgreSQL) or behind the writer (SQLite) until the first has committed, and then reads its answer; if
the first failed nothing is stored, and the second does the work. Kept for 24 hours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from holdfast.errors import InvalidField, KeyReused
from holdfast.http.visit import visit
from holdfast.store import Query, Statement, Transaction

T = TypeVar("T")

HOURS = 24
LONGEST = 200

CLAIM = Query(
    int,
    """
    INSERT INTO http_idempotency (owner, key, fingerprint, answer, made_ms)
    VALUES (:owner, :key, :fingerprint, :nothing, :now)
    ON CONFLICT (owner, key) DO NOTHING
    RETURNING 1
    """,
)
STORE = Statement("UPDATE http_idempotency SET answer = :answer WHERE owner = :owner AND key = :key")
FIND = Query(
    tuple[bytes, bytes],
    "SELECT fingerprint, answer FROM http_idempotency WHERE owner = :owner AND key = :key",
)
FORGET = Statement("DELETE FROM http_idempotency WHERE owner = :owner AND key = :key AND made_ms < :before")
SWEEP = Statement(
    """
    DELETE FROM http_idempotency WHERE (owner, key) IN
        (SELECT owner, key FROM http_idempotency WHERE made_ms < :before LIMIT 1000)
    """
)


class Key(msgspec.Struct, frozen=True):
    """The caller's key, and what tells this request from another one under the same key."""

    owner: int
    key: str
    fingerprint: bytes


def key_of(owner: int, body: bytes) -> Key | None:
    """The `Idempotency-Key` of the request under way, if it has one."""
    now = visit()
    text = now.header(b"idempotency-key")
    if text is None:
        return None
    if not 1 <= len(text) <= LONGEST or not text.isprintable():
        raise InvalidField("Idempotency-Key", f"must be 1 to {LONGEST} printable characters")
    route = f"{now.scope['method']} {now.scope['path']}\n".encode()
    return Key(owner, text, hashlib.sha256(route + body).digest())


def once(tx: Transaction, key: Key | None, now_ms: int, kind: type[T], action: Callable[[], T]) -> T:
    """Runs `action` inside `tx`, or answers what it answered the first time under this key."""
    if key is None:
        return action()
    before = now_ms - HOURS * 3_600_000
    tx.execute(FORGET, owner=key.owner, key=key.key, before=before)
    claimed = tx.row(
        CLAIM, owner=key.owner, key=key.key, fingerprint=key.fingerprint, nothing=b"", now=now_ms
    )
    if claimed is None:
        fingerprint, stored = tx.one(FIND, owner=key.owner, key=key.key)
        if fingerprint != key.fingerprint:
            raise KeyReused
        return msgspec.json.decode(stored, type=kind)
    result = action()
    tx.execute(STORE, owner=key.owner, key=key.key, answer=msgspec.json.encode(result))
    return result


def sweep(tx: Transaction, now_ms: int) -> int:
    """One turn of forgetting keys older than a day; answers how many went."""
    return tx.execute(SWEEP, before=now_ms - HOURS * 3_600_000)
