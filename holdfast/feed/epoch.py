"""Which history a client follows, and whether it has to start over. Pure but for the two rows in `meta`.

The epoch on the wire is opaque to clients, which echo the latest one they got:

| spelling | the client |
|---|---|
| `4f1c…` | is in its first pull of everything (or in one that a reset began): never reset by the floor |
| `4f1c….1750000000000` | was told everything up to that wall time, and pulls increments since |
| none | is the seed's: never checked |

A store that was restored from a backup gets a new epoch, since positions handed out after the backup are
handed out again.
"""

from __future__ import annotations

import secrets

import msgspec

from holdfast.store import Query, Statement, Transaction

EPOCH = Query(str, "SELECT value FROM meta WHERE name = 'epoch'")
FIRST_EPOCH = Statement("INSERT INTO meta (name, value) VALUES ('epoch', :value) ON CONFLICT DO NOTHING")
NEXT_EPOCH = Statement(
    "INSERT INTO meta (name, value) VALUES ('epoch', :value)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class Epoch(msgspec.Struct, frozen=True):
    """The store's epoch, and the wall time at which the client's last complete pull ended, if one has."""

    store: str
    pulled_ms: int | None = None

    def encode(self) -> str:
        return self.store if self.pulled_ms is None else f"{self.store}.{self.pulled_ms}"

    @classmethod
    def decode(cls, text: str) -> Epoch:
        """What is not an epoch of ours becomes one of another store, which leads to a reset."""
        store, dot, pulled = text.partition(".")
        if not dot:
            return cls(store)
        if not (pulled.isascii() and pulled.isdigit() and len(pulled) <= 16):
            return cls("")
        return cls(store, int(pulled))


def must_start_over(given: Epoch | None, since: int, head: int, store: str, oldest_ms: int) -> bool:
    """`oldest_ms`: tombstones of before may be gone, so a pull that ended before cannot be continued."""
    if since > head:
        return True
    if given is None:
        return False
    return given.store != store or (given.pulled_ms is not None and given.pulled_ms < oldest_ms)


def next_epoch(given: Epoch | None, store: str, now_ms: int, *, from_zero: bool, complete: bool) -> Epoch:
    """The epoch that a page answers with."""
    if complete:
        return Epoch(store, now_ms)
    if from_zero or given is None:
        return Epoch(store)
    return Epoch(store, given.pulled_ms)


def ensure_epoch(tx: Transaction) -> str:
    """At start: makes the store's epoch if it has none."""
    tx.execute(FIRST_EPOCH, value=_made())
    return tx.one(EPOCH)


def new_epoch(tx: Transaction) -> str:
    """After a restore: every client starts over, instead of missing what it saw of another history."""
    tx.execute(NEXT_EPOCH, value=_made())
    return tx.one(EPOCH)


def _made() -> str:
    return secrets.token_hex(8)
