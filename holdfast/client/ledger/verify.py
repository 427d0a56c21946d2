"""The checksum of our own rows: never the server's, or it would prove nothing. Counts what the server has of them."""

from __future__ import annotations

from hashlib import sha256

from msgspec import Struct

from holdfast.client.ledger.apply import at_cursor
from holdfast.client.ledger.model import HELD
from holdfast.client.ledger.rows import KINDS
from holdfast.client.replica import View

MODULUS = 1 << 64


class Own(Struct, frozen=True):
    count: int
    digest: str
    since: int
    complete: bool


def own_checksum(view: View) -> Own:
    """Rows never sent are left out; a row with an unsynced change counts with the server's revision of it."""
    at = at_cursor(view)
    count = total = 0
    for kind in KINDS:
        for identity, revision in view.rows(f"SELECT id, upd_time FROM {kind} WHERE known = {HELD}"):
            count += 1
            digest = sha256(f"{kind}\n{identity!s}\n{revision!s}".encode()).digest()
            total += int.from_bytes(digest[:8])
    complete = not at.resetting and at.pulled_ms > 0
    return Own(count, f"{total % MODULUS:016x}", at.since, complete)
