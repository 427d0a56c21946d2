"""The rows that the store's scenarios write and read, the same for us and for the bare drivers."""

from __future__ import annotations

from holdfast.store.migrations import Migration
from holdfast.store.statement import Query, Statement

TABLE = "CREATE TABLE bench_row (id BIGINT PRIMARY KEY, owner BIGINT NOT NULL, body TEXT NOT NULL)"
MIGRATION = Migration("bench", 1, "rows", TABLE)

ADD = Statement("INSERT INTO bench_row (id, owner, body) VALUES (:id, :owner, :body)")
PUT = Statement(
    "INSERT INTO bench_row (id, owner, body) VALUES (:id, :owner, :body)"
    " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, body = excluded.body"
)
ONE = Query(tuple[int, str], "SELECT owner, body FROM bench_row WHERE id = :id")
PAGE = Query(
    tuple[int, int, str], "SELECT id, owner, body FROM bench_row WHERE id > :id ORDER BY id LIMIT 100"
)

BODY = "x" * 100
FILLED = 100_000
FIRST_NEW = 1_000_000_000
"""Ids from here on are the writers'; below are the rows that readers find."""
PUSHED_ROWS = 1_000
FIRST_PUSHED = 500_000_000
"""A heavy push writes the same thousand rows again and again, so that the store does not grow by it."""
