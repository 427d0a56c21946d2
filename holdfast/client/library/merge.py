"""What a pull says, merged into the replica: a local pending change wins, otherwise the server.

| here | a living item | a deleted item |
|---|---|---|
| a pending row under its key, that is not alive there | they are one: ours takes the serverId, its content goes as a change | |
| nothing | inserted | nothing |
| synced | overwritten | removed (with a pending child: kept, and sent again, which revives it) |
| changed | ours stays, its version follows | ours stays, and revives it |
| deleted here | stays deleted, goes to the server | removed |
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from holdfast.client.feeds import Cursor, begin_again, cursor, keep_cursor, set_meta
from holdfast.client.ledger.model import HELD, SENT
from holdfast.client.library import rows
from holdfast.client.library.changes import FILES, LIBRARY, OUTBOX, below
from holdfast.client.library.model import CHANGED, DELETED, NEW, SYNCED, Data, Kind
from holdfast.client.library.rows import Row
from holdfast.client.library.rules import key_of
from holdfast.client.library.wire import Item, Pull
from holdfast.client.replica import Transaction

FEED = "library"
VERSION = "library_version"
"""What the next push says that we know: moved by pulls and by our own pushes."""

NewId = Callable[[], str]


def start_over(tx: Transaction) -> Cursor:
    tx.execute("UPDATE library_row SET version = 0")
    set_meta(tx, VERSION, "0")
    return begin_again(tx, FEED)


def apply_page(tx: Transaction, page: Pull, asked: int, now_ms: int, new_id: NewId) -> bool:
    """False: the cursor has moved since this page was asked for, and nothing was done."""
    at = cursor(tx, FEED)
    if at.since != asked:
        return False
    if page.is_full_sync and (asked or not at.resetting):
        at = start_over(tx)
    dying = {item.server_id for shelf in page.shelves() for item in shelf if item.is_deleted}
    merging = _Merging(tx, at.resetting, new_id, dying)
    for kind, shelf in zip(Kind, page.shelves(), strict=True):
        for item in shelf:
            if not item.is_deleted:
                merging.live(kind, item)
    for shelf in reversed(page.shelves()):
        for item in shelf:
            if item.is_deleted:
                merging.dead(item)
    since, resetting = (page.next_since, at.resetting) if page.has_more else (page.library_version, 0)
    if at.resetting and not resetting:
        _sweep(tx, at.resetting)
    pulled_ms = at.pulled_ms if page.has_more else now_ms
    keep_cursor(tx, FEED, Cursor(since, page.epoch, at.generation, resetting, pulled_ms))
    if not page.has_more:
        set_meta(tx, VERSION, str(page.library_version))
    tx.changed(LIBRARY, FILES)
    return True


class _Merging:
    def __init__(self, tx: Transaction, seen: int, new_id: NewId, dying: Collection[int]) -> None:
        self._tx = tx
        self._seen = seen
        self._new_id = new_id
        self._dying = dying

    def live(self, kind: Kind, item: Item) -> None:
        data = dict(item.data)
        score_id = self._parent(data.pop("scoreId", None))
        setlist_id = self._parent(data.pop("setlistId", None))
        if (kind in (Kind.PART, Kind.ENTRY) and score_id is None) or (
            kind == Kind.ENTRY and setlist_id is None
        ):
            return  # its parent was deleted in the same moment: the page says so too
        key = key_of(kind, data, score_id, setlist_id)
        row = rows.by_server(self._tx, item.server_id)
        if row is not None and row.version > item.version:
            return
        row = row or self._same_key(key)
        if row is None:
            self._insert(kind, item, data, score_id, setlist_id, key)
        elif row.state == SYNCED or (
            row.state in (NEW, CHANGED)
            and (row.score_id, row.setlist_id) == (score_id, setlist_id)
            and row.fields == data
        ):
            self._overwrite(row, item, data, score_id, setlist_id, key)
        else:
            self._keep_ours(row, item, data)

    def _parent(self, server_id: object) -> str | None:
        if not isinstance(server_id, int):
            return None
        found = self._tx.value("SELECT id FROM library_row WHERE server_id = ?", server_id)
        return None if found is None else str(found)

    def _same_key(self, key: str) -> Row | None:
        """A pending row of ours that is the same thing: made here before we knew of the other one, or changed here
        while its own was deleted elsewhere and made anew. Two living rows cannot have one key."""
        for row in rows.find(self._tx, f"key = ? AND state IN ({NEW}, {CHANGED})", key):
            if row.server_id is None or row.known != HELD or row.server_id in self._dying:
                return row
        return None

    def _insert(
        self, kind: Kind, item: Item, data: Data, score_id: str | None, setlist_id: str | None, key: str
    ) -> None:
        pdf = data.get("pdfHash")
        self._tx.execute(
            "INSERT INTO library_row (id, kind, server_id, version, score_id, setlist_id, pdf, key, data,"
            f" updated_at, state, known, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {SYNCED}, {HELD}, ?)",
            self._new_id(),
            int(kind),
            item.server_id,
            item.version,
            score_id,
            setlist_id,
            pdf if isinstance(pdf, str) else None,
            key,
            rows.encoded(data),
            item.updated_at,
            self._seen,
        )

    def _overwrite(
        self, row: Row, item: Item, data: Data, score_id: str | None, setlist_id: str | None, key: str
    ) -> None:
        pdf = data.get("pdfHash")
        self._tx.execute(
            "UPDATE library_row SET server_id = ?, version = ?, score_id = ?, setlist_id = ?, pdf = ?, key = ?,"
            f" data = ?, updated_at = ?, state = {SYNCED}, known = {HELD}, base = NULL, refusal = NULL, seen = ?"
            " WHERE id = ?",
            item.server_id,
            item.version,
            score_id,
            setlist_id,
            pdf if isinstance(pdf, str) else None,
            key,
            rows.encoded(data),
            item.updated_at,
            self._seen,
            row.id,
        )

    def _keep_ours(self, row: Row, item: Item, data: Data) -> None:
        state = DELETED if row.state == DELETED else CHANGED
        self._tx.execute(
            f"UPDATE library_row SET server_id = ?, version = ?, state = {state}, known = {HELD}, base = ?,"
            " seen = ? WHERE id = ?",
            item.server_id,
            item.version,
            rows.encoded(data),
            self._seen,
            row.id,
        )
        self._tx.changed(OUTBOX)

    def dead(self, item: Item) -> None:
        row = rows.by_server(self._tx, item.server_id)
        if row is None or row.version > item.version:
            return
        if row.state == DELETED:
            self._tx.execute("DELETE FROM library_row WHERE id = ?", row.id)
        elif row.state in (NEW, CHANGED) or self._has_pending_child(row):
            # sent as a change of that serverId, which revives it; not alive there until then
            self._tx.execute(
                f"UPDATE library_row SET version = ?, state = {CHANGED}, known = {SENT}, base = NULL,"
                " rev = rev + 1, seen = ? WHERE id = ?",
                item.version,
                self._seen,
                row.id,
            )
            self._tx.changed(OUTBOX)
        else:
            for child in below(self._tx, row):
                self._tx.execute("DELETE FROM library_row WHERE id = ?", child.id)
            self._tx.execute("DELETE FROM library_row WHERE id = ?", row.id)

    def _has_pending_child(self, row: Row) -> bool:
        return any(child.state in (NEW, CHANGED) for child in below(self._tx, row))


def _sweep(tx: Transaction, generation: int) -> None:
    """At the end of a full sync: what it did not meet is not on the server. What is pending is sent again, as new,
    and so are the parents of such rows."""
    unmet = f"seen < {generation} AND known > 0"
    tx.execute(f"DELETE FROM library_row WHERE {unmet} AND state = {DELETED}")
    anew = f"state = {NEW}, known = {SENT}, server_id = NULL, base = NULL, rev = rev + 1"
    tx.execute(f"UPDATE library_row SET {anew} WHERE {unmet} AND state <> {SYNCED}")
    for parent in ("score_id", "setlist_id"):
        tx.execute(
            f"UPDATE library_row SET {anew} WHERE {unmet} AND state = {SYNCED} AND id IN"
            f" (SELECT {parent} FROM library_row WHERE state IN ({NEW}, {CHANGED}) AND {parent} IS NOT NULL)"
        )
    tx.execute(f"DELETE FROM library_row WHERE {unmet} AND state = {SYNCED}")
    for parent in ("score_id", "setlist_id"):
        tx.execute(
            f"DELETE FROM library_row WHERE {parent} IS NOT NULL AND {parent} NOT IN (SELECT id FROM library_row)"
        )
    tx.changed(OUTBOX)
