"""What the server says, written into the replica: pages of the feed and notifications. A local change that is not
synced yet is never overwritten; what the server says meanwhile is kept as its `base`.

| the row here | a live entity arrives | a deletion arrives |
|---|---|---|
| none | inserted, unless our tombstone is newer | nothing |
| synced, not newer | overwritten | deleted |
| synced, newer | kept | kept |
| unsynced | kept; version, upd_time, base follow; synced when both say the same | deleted; what is lost is told |
| deleted here, not yet there | kept; version, upd_time follow | deleted |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from holdfast.client.feeds import Cursor, begin_again, cursor, keep_cursor
from holdfast.client.ledger import rows
from holdfast.client.ledger.changes import BOOKS, FEED, LEDGER, in_book
from holdfast.client.ledger.losing import lose, take_book
from holdfast.client.ledger.model import HELD, NOT_SYNCED, SENT, SYNCED
from holdfast.client.ledger.wire import Entity, Page, WireBill, WireBook, WireImage, encode
from holdfast.client.replica import Transaction, Value, View


def at_cursor(view: View) -> Cursor:
    return cursor(view, FEED)


def start_over(tx: Transaction) -> Cursor:
    """A pull of everything begins: what it does not meet goes at its end. Positions of another history say nothing."""
    begun = begin_again(tx, FEED)
    for kind in rows.KINDS:
        tx.execute(f"UPDATE {kind} SET version = 0 WHERE version > 0")
    tx.execute("DELETE FROM tombstone")
    return begun


def apply_page(tx: Transaction, page: Page, asked: int, now_ms: int) -> bool:
    """False: the cursor has moved since this page was asked for, and nothing was done."""
    at = at_cursor(tx)
    if at.since != asked:
        return False
    if page.reset:
        at = start_over(tx)
    writing = _Writing(tx, at.resetting, now_ms)
    writing.live("book", page.books)
    writing.live("bill", page.bills)
    writing.live("image", page.images)
    for kind, entities in (("image", page.images), ("bill", page.bills), ("book", page.books)):
        for entity in entities:
            if entity.action == "delete":
                writing.dead(kind, entity.id, entity.version)
    resetting = at.resetting
    if not page.has_more and resetting:
        _sweep(tx, resetting, page.server_time, now_ms)
        resetting = 0
    pulled_ms = at.pulled_ms if page.has_more else now_ms
    keep_cursor(tx, FEED, Cursor(page.next_since, page.epoch, at.generation, resetting, pulled_ms))
    tx.execute("DELETE FROM tombstone WHERE version <= ?", page.next_since)
    tx.changed(FEED)
    return True


def apply_notified(tx: Transaction, entity: Entity, version: int, now_ms: int) -> bool:
    """One entity out of turn: the cursor stays. False: its book or bill is not here, so a pull has to bring it."""
    match entity:
        case WireBill(book_id=parent):
            above = "book"
        case WireImage(bill_id=parent):
            above = "bill"
        case _:
            above = parent = ""
    if above and not tx.value(f"SELECT 1 FROM {above} WHERE id = ?", parent):
        return False
    entity.version = version
    # `seen` stays: a pull of everything that is under way meets this row itself
    writing = _Writing(tx, 0, now_ms)
    match entity:
        case WireBook():
            writing.live("book", [entity])
        case WireBill():
            writing.live("bill", [entity])
        case WireImage():
            writing.live("image", [entity])
    return True


def apply_notified_deletion(tx: Transaction, kind: str, identity: str, version: int, now_ms: int) -> None:
    _Writing(tx, 0, now_ms).dead(kind, identity, version)
    tx.execute(
        "INSERT INTO tombstone (id, version) VALUES (?, ?)"
        " ON CONFLICT (id) DO UPDATE SET version = max(version, excluded.version)",
        identity,
        version,
    )


class _Writing:
    """The rows of one page, into one transaction."""

    def __init__(self, tx: Transaction, seen: int, now_ms: int) -> None:
        self._tx = tx
        self._seen = seen
        self._now_ms = now_ms
        self._tombstones: dict[str, int] = {
            str(identity): int(version or 0)
            for identity, version in tx.rows("SELECT id, version FROM tombstone")
        }

    def live(self, kind: str, entities: Sequence[Entity]) -> None:
        buried, seen = self._tombstones, self._seen
        alive = [
            entity
            for entity in entities
            if entity.action != "delete" and not (buried and buried.get(entity.id, 0) > entity.version)
        ]
        if not alive:
            return
        unsynced = self._unsynced(kind, alive)
        plain = [entity for entity in alive if entity.id not in unsynced] if unsynced else alive
        values: Callable[[Any], tuple[Value, ...]] = rows.VALUES[kind]
        writes: list[rows.Row] = [(entity.id, *values(entity), entity.version, seen) for entity in plain]
        self._tx.many(rows.UPSERT[kind], writes)
        if unsynced:
            for entity in alive:
                if entity.id in unsynced:
                    self._beside_ours(kind, entity)
        self._touch(kind, alive)

    def _touch(self, kind: str, entities: Sequence[Entity]) -> None:
        self._tx.changed(LEDGER)
        if kind == "book":
            self._tx.changed(BOOKS)
        books = {entity.id if isinstance(entity, WireBook) else entity.book_id for entity in entities}
        self._tx.changed(*map(in_book, books))

    def _unsynced(self, kind: str, entities: Sequence[Entity]) -> Collection[str]:
        if not self._tx.value(f"SELECT 1 FROM {kind} WHERE synced <> {SYNCED} LIMIT 1"):
            return ()
        found = self._tx.rows(
            f"SELECT id FROM {kind} WHERE synced <> {SYNCED} AND id IN (SELECT value FROM json_each(?))",
            rows.json_list(entity.id for entity in entities),
        )
        return {str(row[0]) for row in found}

    def _beside_ours(self, kind: str, entity: Entity) -> None:
        """We have an unsynced change of this row: it stays; the checksum counts the server's revision."""
        changed = self._tx.execute(
            f"UPDATE {kind} SET version = ?, upd_time = ?, base = ?, known = {HELD}, seen = ?"
            " WHERE id = ? AND version <= ?",
            entity.version,
            entity.upd_time,
            encode(entity).decode(),
            self._seen,
            entity.id,
            entity.version,
        )
        if changed and self._says_the_same(kind, entity):
            take_theirs(self._tx, kind, entity)

    def _says_the_same(self, kind: str, entity: Entity) -> bool:
        match entity:
            case WireBook():
                row = self._tx.row(rows.BOOK, entity.id)
                return row is not None and rows.says_the_same(rows.as_book(row), entity)
            case WireBill():
                row = self._tx.row(f"{rows.BILL}", entity.id)
                return row is not None and rows.says_the_same(rows.as_bill(row), entity)
            case WireImage():
                return not self._tx.value(f"SELECT deleted FROM {kind} WHERE id = ?", entity.id)

    def dead(self, kind: str, identity: str, version: int) -> None:
        row = rows.sync_of(self._tx, kind, identity)
        if kind == "book":
            self._tx.changed(LEDGER, BOOKS, in_book(identity))
            if row is None or row.version <= version:
                take_book(self._tx, identity, "book_gone", self._now_ms)
            return
        if row is None or row.version > version:
            return
        book = str(self._tx.value(f"SELECT book_id FROM {kind} WHERE id = ?", identity))
        lose(self._tx, kind, "id = ?", identity, reason="deleted", now_ms=self._now_ms)
        if kind == "bill":
            lose(self._tx, "image", "bill_id = ?", identity, reason="deleted", now_ms=self._now_ms)
        self._tx.changed(LEDGER, in_book(book))


def take_theirs(tx: Transaction, kind: str, entity: Entity) -> None:
    """The row says what the server says, and has nothing more to send."""
    sets = ", ".join(f"{name} = ?" for name in rows.FIELDS[kind])
    tx.execute(
        f"UPDATE {kind} SET {sets}, known = {HELD}, synced = {SYNCED}, base = NULL, refusal = NULL,"
        " msg_id = NULL, version = max(version, ?) WHERE id = ?",
        *rows.values_of(entity),
        entity.version,
        entity.id,
    )


def _sweep(tx: Transaction, generation: int, head: int, now_ms: int) -> None:
    """At the end of a pull of everything: what it did not meet is not on the server. Spares what is not synced (and
    the books that such rows of ours are in: they are sent again, as new), and what was told after this page."""
    unmet = f"seen < {generation} AND version <= {head}"
    for kind in rows.KINDS:
        tx.execute(f"DELETE FROM {kind} WHERE {unmet} AND deleted = 1 AND known = {HELD}")
        tx.execute(
            f"UPDATE {kind} SET known = {SENT}, base = NULL, upd_time = '', synced = {NOT_SYNCED}"
            f" WHERE {unmet} AND known = {HELD} AND synced <> {SYNCED}"
        )
    me = str(tx.value("SELECT value FROM meta WHERE name = 'user_id'") or "")
    for (book_id,) in tx.rows(f"SELECT id FROM book WHERE {unmet} AND synced = {SYNCED}"):
        kept = tx.execute(
            f"UPDATE book SET known = {SENT}, synced = {NOT_SYNCED}, upd_time = '', rev = rev + 1"
            f" WHERE id = ? AND crt_user = ?"
            f" AND EXISTS (SELECT 1 FROM bill WHERE book_id = book.id AND synced <> {SYNCED} AND deleted = 0)",
            book_id,
            me,
        )
        if not kept:
            take_book(tx, str(book_id), "book_gone", now_ms)
    tx.execute(f"DELETE FROM bill WHERE {unmet} AND synced = {SYNCED}")
    tx.execute(f"DELETE FROM image WHERE {unmet} AND synced = {SYNCED}")
    tx.execute("DELETE FROM image WHERE bill_id NOT IN (SELECT id FROM bill)")
    tx.changed(LEDGER, BOOKS)
