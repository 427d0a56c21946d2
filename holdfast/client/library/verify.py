"""The checksum of our own rows of the library: those that live on the server, with the version that we have of each."""

from __future__ import annotations

from hashlib import sha256

from holdfast.client.feeds import cursor, meta
from holdfast.client.ledger.model import HELD
from holdfast.client.ledger.verify import MODULUS, Own
from holdfast.client.library.merge import FEED, VERSION
from holdfast.client.library.model import WORD
from holdfast.client.replica import View


def own_checksum(view: View) -> Own:
    at = cursor(view, FEED)
    count = total = 0
    for kind, server_id, version in view.rows(
        f"SELECT kind, server_id, version FROM library_row WHERE known = {HELD} AND server_id IS NOT NULL"
    ):
        count += 1
        assert isinstance(kind, int)
        digest = sha256(f"{WORD[kind]}\n{server_id!s}\n{version!s}".encode()).digest()
        total += int.from_bytes(digest[:8])
    complete = (
        not at.resetting
        and at.pulled_ms > 0
        and int(meta(view, VERSION) or "0") == at.since
        and not view.value("SELECT 1 FROM library_push")
    )
    return Own(count, f"{total % MODULUS:016x}", at.since, complete)
