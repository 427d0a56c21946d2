"""What an app sees of the ledger: books, bills, images, as they are in this replica. Pure data."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from msgspec import Struct

Kind = Literal["book", "bill", "image"]

NOT_SYNCED, SYNCED, UPDATED, SYNCING = 0, 1, 2, 3
"""`synced`: over HTTP 0 and 1; over MQTT also 2 (changed since it was synced) and 3 (on its way)."""

NEVER_SENT, SENT, HELD = 0, 1, 2
"""What we know of the server: it cannot have this row; it may; it does."""


class Refusal(Struct, frozen=True):
    """Why the server does not take a row. The row is parked until it is changed, retried or discarded."""

    code: int
    reason: str
    message: str


class Book(Struct, frozen=True):
    id: str
    name: str
    type: str
    banner: str | None
    crt_user_id: str
    members: tuple[str, ...]
    is_initial: bool | None
    crt_time: str
    upd_time: str
    """The server's name for its revision; empty while it has none."""
    synced: int
    refusal: Refusal | None = None


class Bill(Struct, frozen=True):
    id: str
    book_id: str
    money: Decimal
    type: int
    category: str
    time: str
    remark: str | None
    crt_user: str
    crt_time: str
    upd_time: str
    synced: int
    refusal: Refusal | None = None


class Image(Struct, frozen=True):
    id: str
    bill_id: str
    book_id: str
    md5: str
    size: int
    mime: str
    ext: str
    online_path: str
    crt_user: str
    upd_time: str
    synced: int
    refusal: Refusal | None = None


class ShareCode(Struct, frozen=True):
    """With it others join a book."""

    code: str
    expires_at: str | int


class Lost(Struct, frozen=True):
    """A local change that can never be delivered: what it belonged to is gone."""

    number: int
    kind: str
    id: str
    body: str
    reason: str
    lost_ms: int
