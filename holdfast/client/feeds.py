"""How far each feed has been followed: moved only in the transaction that applies what lies before it."""

from __future__ import annotations

from msgspec import Struct

from holdfast.client.replica import Transaction, View


class Cursor(Struct, frozen=True):
    """`resetting`: the generation of the pull of everything that is under way, 0 when none is."""

    since: int = 0
    epoch: str = ""
    generation: int = 0
    resetting: int = 0
    pulled_ms: int = 0


def cursor(view: View, feed: str) -> Cursor:
    found = view.row("SELECT since, epoch, generation, resetting, pulled_ms FROM feed WHERE name = ?", feed)
    return Cursor(*found) if found else Cursor()  # type: ignore[arg-type]


def keep_cursor(tx: Transaction, feed: str, moved: Cursor) -> None:
    tx.execute(
        "INSERT INTO feed (name, since, epoch, generation, resetting, pulled_ms) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET since = excluded.since, epoch = excluded.epoch,"
        " generation = excluded.generation, resetting = excluded.resetting, pulled_ms = excluded.pulled_ms",
        feed,
        moved.since,
        moved.epoch,
        moved.generation,
        moved.resetting,
        moved.pulled_ms,
    )


def begin_again(tx: Transaction, feed: str) -> Cursor:
    """A pull of everything begins: what it does not meet goes at its end."""
    now = cursor(tx, feed)
    begun = Cursor(0, "", now.generation + 1, now.generation + 1, now.pulled_ms)
    keep_cursor(tx, feed, begun)
    return begun


def meta(view: View, name: str) -> str | None:
    found = view.value("SELECT value FROM meta WHERE name = ?", name)
    return None if found is None else str(found)


def set_meta(tx: Transaction, name: str, value: str) -> None:
    tx.execute(
        "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name,
        value,
    )
