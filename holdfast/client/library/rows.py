"""The library's rows in the replica."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from holdfast.client.ledger.model import Refusal
from holdfast.client.library.model import DELETED, Data, Entry, Kind, Part, Score, Setlist
from holdfast.client.replica import Value, View

COLUMNS = (
    "id, kind, server_id, version, score_id, setlist_id, pdf, key, data, state, known, rev, base, refusal"
)

_refusal = msgspec.json.Decoder(Refusal)
_data = msgspec.json.Decoder(Data)


class Row(Struct, frozen=True):
    """One entity as it is kept. Fields in the order of COLUMNS."""

    id: str
    kind: int
    server_id: int | None
    version: int
    score_id: str | None
    setlist_id: str | None
    pdf: str | None
    key: str
    data: str
    state: int
    known: int
    rev: int
    base: str | None
    refusal: str | None

    @property
    def fields(self) -> Data:
        return _data.decode(self.data)


def as_row(values: Sequence[Value]) -> Row:
    return Row(*values)  # type: ignore[arg-type]


def find(view: View, where: str, *values: Value) -> list[Row]:
    return [as_row(row) for row in view.rows(f"SELECT {COLUMNS} FROM library_row WHERE {where}", *values)]


def by_id(view: View, identity: str) -> Row | None:
    found = find(view, "id = ?", identity)
    return found[0] if found else None


def by_server(view: View, server_id: int) -> Row | None:
    found = find(view, "server_id = ?", server_id)
    return found[0] if found else None


def living(view: View, kind: Kind, where: str = "1", *values: Value) -> list[Row]:
    return find(view, f"kind = {int(kind)} AND state <> {DELETED} AND {where}", *values)


def decoded(text: str) -> Data:
    return _data.decode(text)


def encoded(data: Data) -> str:
    return msgspec.json.encode(data).decode()


def _text(data: Data, name: str) -> str | None:
    found = data.get(name)
    return found if isinstance(found, str) else None


def _number(data: Data, name: str) -> int | None:
    found = data.get(name)
    return found if isinstance(found, int) else None


def _why(row: Row) -> Refusal | None:
    return _refusal.decode(row.refusal) if row.refusal is not None else None


def as_score(row: Row) -> Score:
    data = row.fields
    return Score(
        row.id,
        _text(data, "title") or "",
        _text(data, "composer"),
        _number(data, "bpm"),
        row.state,
        _why(row),
    )


def as_part(row: Row) -> Part:
    data = row.fields
    return Part(
        row.id,
        row.score_id or "",
        _text(data, "instrumentName") or "",
        row.pdf,
        _number(data, "orderIndex"),
        _text(data, "annotationsJson"),
        row.state,
        _why(row),
    )


def as_setlist(row: Row) -> Setlist:
    data = row.fields
    return Setlist(row.id, _text(data, "name") or "", _text(data, "description"), row.state, _why(row))


def as_entry(row: Row) -> Entry:
    return Entry(
        row.id,
        row.setlist_id or "",
        row.score_id or "",
        _number(row.fields, "orderIndex"),
        row.state,
        _why(row),
    )


Shown = Score | Part | Setlist | Entry


def shown(row: Row) -> Shown:
    match row.kind:
        case Kind.SCORE:
            return as_score(row)
        case Kind.PART:
            return as_part(row)
        case Kind.SETLIST:
            return as_setlist(row)
        case _:
            return as_entry(row)
