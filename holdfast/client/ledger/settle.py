"""What the server's answers do to the rows that were sent. Actions on the replica; no network."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from holdfast.client.ledger import rows
from holdfast.client.ledger.apply import take_theirs
from holdfast.client.ledger.changes import BOOKS, LEDGER, OUTBOX, in_book
from holdfast.client.ledger.losing import lose, remove_book, take_book
from holdfast.client.ledger.model import HELD, NOT_SYNCED, SYNCED, SYNCING, UPDATED, Refusal
from holdfast.client.ledger.outbox import Op
from holdfast.client.ledger.rules import Reaction, reaction
from holdfast.client.ledger.wire import Entity, Outcome, WireBook, decode, encode
from holdfast.client.replica import Transaction, View


class Settled(Struct, frozen=True):
    put_off: list[str]
    parked: list[Op]


def settle(tx: Transaction, ops: Sequence[Op], outcomes: Sequence[Outcome], now_ms: int) -> Settled:
    """Writes down what became of each."""
    off, parked = list[str](), list[Op]()
    for op, outcome in zip(ops, outcomes, strict=True):
        match reaction(outcome.status, outcome.reason or "", op.op):
            case Reaction.DONE if op.op == "delete":
                _gone(tx, op)
            case Reaction.DONE:
                held(tx, op, decoded(op.entity, outcome.data))
            case Reaction.UPDATE:
                differs(tx, op, decoded(op.entity, outcome.data))
            case Reaction.DROP:
                drop(tx, op, now_ms)
            case Reaction.LATER:
                off.append(op.id)
            case Reaction.PARK if _waits_for_its_book(tx, op, outcome):
                if not _book_is_parked(tx, op):  # otherwise it is not chosen again before its book is
                    off.append(op.id)
            case Reaction.PARK:
                if park(tx, op, refusal_of(outcome)):
                    parked.append(op)
    tx.changed(LEDGER)
    return Settled(off, parked)


def refusal_of(outcome: Outcome) -> Refusal:
    reason = outcome.reason or f"status_{outcome.status}"
    return Refusal(outcome.code, reason, outcome.message or reason)


def decoded(kind: str, data: msgspec.Raw) -> Entity | None:
    """The stored entity, if the answer carries one."""
    return None if bytes(data) in (b"null", b"") else decode(kind, data)


def held(tx: Transaction, op: Op, entity: Entity | None) -> None:
    """The server has what was sent. Synced only if the row has not changed since; and if the feed has shown a later
    revision meanwhile (another device of ours), that one stands."""
    row = rows.sync_of(tx, op.entity, op.id)
    if row is None or row.deleted:
        tx.execute(f"UPDATE {op.entity} SET known = {HELD} WHERE id = ?", op.id)
        return
    if entity is None:
        tx.execute(
            f"UPDATE {op.entity} SET known = {HELD},"
            f" synced = CASE WHEN rev = ? THEN {SYNCED} ELSE synced END,"
            f" base = CASE WHEN rev = ? THEN NULL ELSE base END WHERE id = ?",
            op.rev,
            op.rev,
            op.id,
        )
        return
    theirs = _later(row, entity)
    if row.rev == op.rev:
        take_theirs(tx, op.entity, theirs)
    else:
        _follow(tx, op, theirs)
    _touch(tx, theirs)


def _later(row: rows.Sync, answered: Entity) -> Entity:
    """`upd_time` strictly increases with each revision of a row, and has one spelling."""
    if row.base is None or row.upd_time <= answered.upd_time:
        return answered
    return decode(rows.kind_of(answered), row.base)


def _follow(tx: Transaction, op: Op, theirs: Entity) -> None:
    tx.execute(
        f"UPDATE {op.entity} SET known = {HELD}, upd_time = ?, base = ?, version = max(version, ?),"
        f" synced = CASE WHEN synced = {SYNCING} THEN {UPDATED} ELSE synced END WHERE id = ?",
        theirs.upd_time,
        encode(theirs).decode(),
        theirs.version,
        op.id,
    )


def differs(tx: Transaction, op: Op, entity: Entity | None) -> None:
    """It has this row of ours with other content: ours goes as a change, next time."""
    if entity is not None:
        _follow(tx, op, entity)
    tx.execute(
        f"UPDATE {op.entity} SET known = {HELD},"
        f" synced = CASE WHEN synced = {SYNCING} THEN {UPDATED} ELSE synced END WHERE id = ?",
        op.id,
    )


def _gone(tx: Transaction, op: Op) -> None:
    if op.entity == "book":
        remove_book(tx, op.id)
        tx.changed(BOOKS, in_book(op.id))
        return
    book = tx.value(f"SELECT book_id FROM {op.entity} WHERE id = ?", op.id)
    tx.execute(f"DELETE FROM {op.entity} WHERE id = ?", op.id)
    if op.entity == "bill":
        tx.execute("DELETE FROM image WHERE bill_id = ?", op.id)
    if book is not None:
        tx.changed(in_book(str(book)))


def drop(tx: Transaction, op: Op, now_ms: int) -> None:
    """Deleted elsewhere: it goes here too; what we had changed in it is written down as lost."""
    if op.entity == "book":
        take_book(tx, op.id, "deleted", now_ms)
        tx.changed(BOOKS, in_book(op.id))
        return
    book = tx.value(f"SELECT book_id FROM {op.entity} WHERE id = ?", op.id)
    lose(tx, op.entity, "id = ?", op.id, reason="deleted", now_ms=now_ms)
    if op.entity == "bill":
        lose(tx, "image", "bill_id = ?", op.id, reason="deleted", now_ms=now_ms)
    if book is not None:
        tx.changed(in_book(str(book)))


def _waits_for_its_book(view: View, op: Op, outcome: Outcome) -> bool:
    """A bill that came with its book, which was not taken: nothing is wrong with the bill."""
    return (
        op.entity == "bill"
        and outcome.status == 404
        and not view.value(
            f"SELECT 1 FROM book WHERE known = {HELD} AND id = (SELECT book_id FROM bill WHERE id = ?)", op.id
        )
    )


def _book_is_parked(view: View, op: Op) -> bool:
    return bool(
        view.value(
            "SELECT 1 FROM book WHERE refusal IS NOT NULL AND id = (SELECT book_id FROM bill WHERE id = ?)",
            op.id,
        )
    )


def park(tx: Transaction, op: Op, refusal: Refusal) -> bool:
    """Unless it was changed since it was sent: that change deserves its own try."""
    parked = tx.execute(
        f"UPDATE {op.entity} SET refusal = ?,"
        f" synced = CASE WHEN synced = {SYNCING} THEN {NOT_SYNCED} ELSE synced END WHERE id = ? AND rev = ?",
        msgspec.json.encode(refusal).decode(),
        op.id,
        op.rev,
    )
    tx.changed(LEDGER)
    return bool(parked)


def _touch(tx: Transaction, entity: Entity) -> None:
    if isinstance(entity, WireBook):
        tx.changed(BOOKS)
    else:
        tx.changed(in_book(entity.book_id))


def discard(tx: Transaction, identity: str) -> bool:
    """Gives up our change of a row: the server's state again, or nothing if it has none. False: no such row."""
    for kind in rows.KINDS:
        row = rows.sync_of(tx, kind, identity)
        if row is None or row.synced == SYNCED:
            continue
        if row.base is not None:
            tx.execute(f"UPDATE {kind} SET deleted = 0 WHERE id = ?", identity)
            take_theirs(tx, kind, decode(kind, row.base))
        elif row.known == HELD and row.deleted:
            tx.execute(
                f"UPDATE {kind} SET deleted = 0, synced = {SYNCED}, refusal = NULL WHERE id = ?", identity
            )
        elif kind == "book":
            remove_book(tx, identity)
        else:
            tx.execute(f"DELETE FROM {kind} WHERE id = ?", identity)
        tx.changed(LEDGER, BOOKS, OUTBOX)
        return True
    return False
