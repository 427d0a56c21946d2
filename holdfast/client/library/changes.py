"""What an app changes in its library, in the replica alone; each is one transaction."""

from __future__ import annotations

from msgspec import Struct

from holdfast.client.errors import AlreadyHere, NotHere
from holdfast.client.ledger.model import HELD, NEVER_SENT
from holdfast.client.library import rows
from holdfast.client.library.model import CHANGED, DELETED, NEW, SYNCED, WORD, Data, Kind
from holdfast.client.library.rows import Row
from holdfast.client.library.rules import key_of
from holdfast.client.replica import Transaction, View

OUTBOX = "library.outbox"
LIBRARY = "library"
FILES = "library.files"

PARENT = {"score_id": Kind.SCORE, "setlist_id": Kind.SETLIST}


class Draft(Struct, frozen=True):
    """A row about to be added."""

    id: str
    kind: Kind
    data: Data
    score_id: str | None = None
    setlist_id: str | None = None
    pdf: str | None = None
    pdf_size: int = 0
    pdf_name: str = ""


def get(view: View, kind: Kind, identity: str) -> Row:
    row = rows.by_id(view, identity)
    if row is None or row.kind != kind or row.state == DELETED:
        raise NotHere(f"there is no {WORD[kind]} {identity} in this replica")
    return row


def add(tx: Transaction, draft: Draft) -> Row:
    if draft.score_id is not None:
        get(tx, Kind.SCORE, draft.score_id)
    if draft.setlist_id is not None:
        get(tx, Kind.SETLIST, draft.setlist_id)
    key = key_of(draft.kind, draft.data, draft.score_id, draft.setlist_id)
    _require_free(tx, draft.kind, key)
    if draft.pdf is not None:
        keep_file(tx, draft.pdf, draft.pdf_size, draft.pdf_name)
    tx.execute(
        "INSERT INTO library_row (id, kind, score_id, setlist_id, pdf, key, data, updated_at, state, known, rev)"
        f" VALUES (?, ?, ?, ?, ?, ?, ?, '', {NEW}, {NEVER_SENT}, 1)",
        draft.id,
        int(draft.kind),
        draft.score_id,
        draft.setlist_id,
        draft.pdf,
        key,
        rows.encoded(draft.data),
    )
    tx.changed(OUTBOX, LIBRARY)
    return get(tx, draft.kind, draft.id)


def _require_free(tx: Transaction, kind: Kind, key: str, but: str = "") -> None:
    if tx.value(f"SELECT 1 FROM library_row WHERE key = ? AND state <> {DELETED} AND id <> ?", key, but):
        raise AlreadyHere(f"there is such a {WORD[kind]} already")


def keep_file(tx: Transaction, md5: str, size: int, name: str) -> None:
    tx.execute(
        "INSERT INTO library_file (md5, size, name) VALUES (?, ?, ?)"
        " ON CONFLICT (md5) DO UPDATE SET refusal = NULL, name = excluded.name",
        md5,
        size,
        name,
    )
    tx.changed(FILES)


def change(tx: Transaction, kind: Kind, identity: str, changes: Data) -> Row:
    row = get(tx, kind, identity)
    data = {**row.fields, **changes}
    key = key_of(kind, data, row.score_id, row.setlist_id)
    _require_free(tx, kind, key, identity)
    pdf = data.get("pdfHash")
    tx.execute(
        f"UPDATE library_row SET data = ?, key = ?, pdf = ?, rev = rev + 1, refusal = NULL,"
        f" base = CASE WHEN state = {SYNCED} THEN data ELSE base END,"
        f" state = CASE WHEN known = {HELD} THEN {CHANGED} ELSE {NEW} END WHERE id = ?",
        rows.encoded(data),
        key,
        pdf if isinstance(pdf, str) else None,
        identity,
    )
    tx.changed(OUTBOX, LIBRARY)
    return get(tx, kind, identity)


def delete(tx: Transaction, kind: Kind, identity: str) -> None:
    """With everything that hangs on it, as the server does it."""
    row = get(tx, kind, identity)
    for doomed in (*below(tx, row), row):
        if doomed.known == NEVER_SENT:
            tx.execute("DELETE FROM library_row WHERE id = ?", doomed.id)
        else:
            tx.execute(
                f"UPDATE library_row SET state = {DELETED}, rev = rev + 1, refusal = NULL WHERE id = ?",
                doomed.id,
            )
    tx.changed(OUTBOX, LIBRARY, FILES)


def below(view: View, row: Row) -> list[Row]:
    """A score's parts and entries, a setlist's entries."""
    match row.kind:
        case Kind.SCORE:
            return rows.find(view, "score_id = ?", row.id)
        case Kind.SETLIST:
            return rows.find(view, "setlist_id = ?", row.id)
        case _:
            return []


def retry(tx: Transaction, identity: str) -> None:
    if not tx.execute("UPDATE library_row SET refusal = NULL WHERE id = ?", identity):
        raise NotHere(f"nothing with the id {identity} is in this replica")
    tx.execute(
        "UPDATE library_file SET refusal = NULL WHERE md5 = (SELECT pdf FROM library_row WHERE id = ?)",
        identity,
    )
    tx.changed(OUTBOX, LIBRARY, FILES)


def discard(tx: Transaction, identity: str) -> bool:
    """Gives up our change of a row: what the server has stands again, or nothing. False: nothing to give up."""
    row = rows.by_id(tx, identity)
    if row is None or row.state == SYNCED:
        return False
    if row.known != HELD:
        for doomed in (*below(tx, row), row):
            tx.execute("DELETE FROM library_row WHERE id = ?", doomed.id)
    else:
        before = row.base if row.base is not None else row.data
        data = rows.decoded(before)
        pdf = data.get("pdfHash")
        tx.execute(
            f"UPDATE library_row SET data = ?, key = ?, pdf = ?, state = {SYNCED}, base = NULL, refusal = NULL"
            " WHERE id = ?",
            before,
            key_of(row.kind, data, row.score_id, row.setlist_id),
            pdf if isinstance(pdf, str) else None,
            identity,
        )
    tx.changed(OUTBOX, LIBRARY, FILES)
    return True


def pending(view: View) -> int:
    return view.number(f"SELECT count(*) FROM library_row WHERE state <> {SYNCED} AND refusal IS NULL")


def parked(view: View) -> int:
    return view.number(f"SELECT count(*) FROM library_row WHERE state <> {SYNCED} AND refusal IS NOT NULL")
