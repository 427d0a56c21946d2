"""A push: made from what is pending, kept until it is answered, and what the answer does. Actions; no network.

The body and its key are on the disk before it is sent: after a lost answer, or a crash, the same push is sent again and
gets its first answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.client.feeds import cursor, meta, set_meta
from holdfast.client.ledger.model import HELD, SENT, Refusal
from holdfast.client.library import rows
from holdfast.client.library.changes import FILES, LIBRARY
from holdfast.client.library.merge import FEED, VERSION
from holdfast.client.library.model import CHANGED, DELETED, NEW, SYNCED, WORD, Data, Kind
from holdfast.client.library.rows import Row
from holdfast.client.library.wire import Change, PushBody, Pushed
from holdfast.client.replica import Transaction, View

MOST = 1_000
MOST_BYTES = 8 * 1024 * 1024  # the server takes 16 MiB


class SentRow(Struct, frozen=True, array_like=True):
    id: str
    rev: int
    is_delete: bool
    server_id: int | None


class Push(Struct, frozen=True):
    key: str
    body: bytes
    rows: list[SentRow]


_sent = msgspec.json.Decoder(list[SentRow])


def next_push(tx: Transaction, most: int) -> Push | None:
    """The one that is on its way, or a new one of what is pending."""
    under_way = tx.row("SELECT key, body, rows FROM library_push")
    if under_way is not None:
        key, body, sent = under_way
        assert isinstance(body, bytes)
        return Push(str(key), body, _sent.decode(str(sent)))
    chosen = _chosen(tx, most)
    if not chosen:
        return None
    push = Push(secrets.token_hex(16), _body(tx, chosen), [_as_sent(row) for row in chosen])
    tx.many(f"UPDATE library_row SET known = max(known, {SENT}) WHERE id = ?", [(row.id,) for row in chosen])
    tx.execute(
        "INSERT INTO library_push (key, body, rows) VALUES (?, ?, ?)",
        push.key,
        push.body,
        msgspec.json.encode(push.rows).decode(),
    )
    return push


def _as_sent(row: Row) -> SentRow:
    return SentRow(row.id, row.rev, row.state == DELETED, row.server_id)


def _chosen(view: View, most: int) -> list[Row]:
    """In order of dependency; a row whose parent the server neither has nor gets waits, and so does one whose file
    is not there yet."""
    pending = rows.find(
        view,
        f"state <> {SYNCED} AND refusal IS NULL AND (pdf IS NULL OR state = {DELETED} OR NOT EXISTS"
        " (SELECT 1 FROM library_file f WHERE f.md5 = library_row.pdf AND f.uploaded = 0))"
        f" ORDER BY state = {DELETED}, kind, id LIMIT ?",
        most,
    )
    chosen: dict[str, Row] = {}
    size = 0
    for row in pending:
        if row.state != DELETED and not all(
            parent is None or parent in chosen or _is_there(view, parent)
            for parent in (row.score_id, row.setlist_id)
        ):
            continue
        size += len(row.data) + 200
        if chosen and size > MOST_BYTES:
            break
        chosen[row.id] = row
    return list(chosen.values())


def _is_there(view: View, parent: str) -> bool:
    return bool(
        view.value(
            f"SELECT 1 FROM library_row WHERE id = ? AND server_id IS NOT NULL AND state <> {DELETED}", parent
        )
    )


def _body(view: View, chosen: Sequence[Row]) -> bytes:
    at = cursor(view, FEED)
    shelves: dict[int, list[Change]] = {kind: [] for kind in Kind}
    deletes: list[str] = []
    for row in chosen:
        if row.state == DELETED and row.server_id is not None:
            deletes.append(f"{WORD[row.kind]}:{row.server_id}")
        else:
            shelves[row.kind].append(_change(view, row))
    epoch: str | UnsetType = at.epoch or UNSET
    version = max(at.since, int(meta(view, VERSION) or "0"))
    scores, parts, setlists, entries = (shelves[kind] for kind in Kind)
    return msgspec.json.encode(PushBody(version, epoch, scores, parts, setlists, entries, deletes))


def _change(view: View, row: Row) -> Change:
    if row.state == DELETED:  # sent once, and never answered: the server knows it by our name, if at all
        return Change(WORD[row.kind], row.id, "delete", row.version)
    data: Data = row.fields
    for field, parent in (("scoreId", row.score_id), ("setlistId", row.setlist_id)):
        if parent is not None:
            known = view.value("SELECT server_id FROM library_row WHERE id = ?", parent)
            data[field] = known if known is not None else parent
    operation = "create" if row.server_id is None else "update"
    server_id: int | UnsetType = UNSET if row.server_id is None else row.server_id
    return Change(WORD[row.kind], row.id, operation, row.version, data, server_id)


# -- what became of it


def taken(tx: Transaction, push: Push, answer: Pushed) -> list[str]:
    """Answers the rows that the server ignored for good."""
    accepted = set(answer.accepted)
    parked = []
    for sent in push.rows:
        row = rows.by_id(tx, sent.id)
        if row is None:
            continue
        if sent.is_delete:
            tx.execute("DELETE FROM library_row WHERE id = ?", sent.id)
        elif sent.id in accepted:
            _accepted(tx, row, sent, answer.server_id_mapping.get(sent.id, sent.server_id))
        elif sent.server_id is not None:
            # it does not know that serverId (any more): ours goes as a new row
            tx.execute(
                f"UPDATE library_row SET server_id = NULL, state = {NEW}, known = {SENT}, rev = rev + 1 WHERE id = ?",
                sent.id,
            )
        else:
            _park(
                tx, sent.id, Refusal(0, "ignored", "the server ignored this: what it belongs to is not there")
            )
            parked.append(sent.id)
    _over(tx)
    set_meta(tx, VERSION, str(answer.new_library_version))
    return parked


def _accepted(tx: Transaction, row: Row, sent: SentRow, server_id: int | None) -> None:
    """Synced only if the row has not changed since it was sent."""
    if server_id is not None and (other := rows.by_server(tx, server_id)) is not None and other.id != row.id:
        _make_one(tx, other, row)
    if row.state == DELETED:
        tx.execute(f"UPDATE library_row SET server_id = ?, known = {HELD} WHERE id = ?", server_id, row.id)
        return
    same = row.rev == sent.rev
    tx.execute(
        f"UPDATE library_row SET server_id = ?, known = {HELD}, state = ?, base = CASE WHEN ? THEN NULL ELSE base END"
        " WHERE id = ?",
        server_id,
        SYNCED if same else CHANGED,
        same,
        row.id,
    )


def _make_one(tx: Transaction, other: Row, row: Row) -> None:
    """The server says that two of our rows are one: what hangs on the other hangs on this one."""
    for parent in ("score_id", "setlist_id"):
        tx.execute(f"UPDATE library_row SET {parent} = ? WHERE {parent} = ?", row.id, other.id)
    tx.execute("DELETE FROM library_row WHERE id = ?", other.id)


def conflicted(tx: Transaction) -> None:
    """Nothing of it was taken: after a pull another one is made."""
    _over(tx)


def refused(tx: Transaction, push: Push, named: str, refusal: Refusal) -> str | None:
    """The row that is to blame is parked, the others go with the next push. None: it is none of ours."""
    culprit = _named(push, named)
    _over(tx)
    if culprit is not None:
        _park(tx, culprit, refusal)
    return culprit


def file_was_missing(tx: Transaction, push: Push, named: str) -> str | None:
    """The file of that row goes up (again) before it is pushed again."""
    culprit = _named(push, named)
    _over(tx)
    if culprit is not None:
        tx.execute(
            "UPDATE library_file SET uploaded = 0, upload_url = NULL WHERE md5 = (SELECT pdf FROM library_row WHERE id = ?)",
            culprit,
        )
        if not tx.value(
            "SELECT 1 FROM library_file WHERE md5 = (SELECT pdf FROM library_row WHERE id = ?)", culprit
        ):
            _park(tx, culprit, Refusal(40940, "file_missing", "its file is neither on the server nor here"))
        tx.changed(FILES)
    return culprit


def _named(push: Push, named: str) -> str | None:
    """By its entityId, or by its delete key."""
    number = named.partition(":")[2]
    for sent in push.rows:
        if sent.id == named or (sent.is_delete and number and number == str(sent.server_id)):
            return sent.id
    return None


def _park(tx: Transaction, identity: str, refusal: Refusal) -> None:
    tx.execute(
        "UPDATE library_row SET refusal = ? WHERE id = ?", msgspec.json.encode(refusal).decode(), identity
    )
    tx.changed(LIBRARY)


def _over(tx: Transaction) -> None:
    tx.execute("DELETE FROM library_push")
    tx.changed(LIBRARY)
