"""What `holdfast check` proves of this room: generators of sentences, one per problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import msgspec

from holdfast.library import queries as sql
from holdfast.library.known import parents_of
from holdfast.library.model import WORD, Data, Kind, Row
from holdfast.library.rules import PARENTS, REQUIRED, key_of
from holdfast.store import Query, Snapshot

PAGE = 1_000


_LIBRARIES = Query(
    tuple[int, int],
    "SELECT user_id, version FROM library WHERE user_id > :above ORDER BY user_id LIMIT :limit",
)
_STRAY_ROWS = Query(
    int,
    "SELECT count(*) FROM library_entity WHERE NOT EXISTS"
    " (SELECT 1 FROM library WHERE library.user_id = library_entity.user_id)",
)
_STRAY_ALIASES = Query(
    tuple[int, str],
    """
    SELECT user_id, entity_id FROM library_alias WHERE NOT EXISTS (SELECT 1 FROM library_entity
        WHERE library_entity.id = library_alias.id AND library_entity.user_id = library_alias.user_id
            AND library_entity.kind = library_alias.kind)
    """,
)
_NEXT_ID = Query(int, "SELECT next FROM library_next_id")
_LAST_ID = Query(int, "SELECT coalesce(max(id), 0) FROM library_entity")
_REFERENCES = Query(
    tuple[str, str],
    """
    SELECT library_entity.pdf_md5, coalesce(blob.sha256, '') FROM library_entity
        LEFT JOIN blob ON blob.md5 = library_entity.pdf_md5 WHERE library_entity.pdf_md5 IS NOT NULL
    """,
)


def problems(view: Snapshot) -> Iterator[str]:
    for user_id, version in _libraries(view):
        for problem in _library(view, user_id, version):
            yield f"library of {user_id}: {problem}"
    if strays := view.one(_STRAY_ROWS):
        yield f"{strays} entities belong to no library"
    for user_id, entity_id in view.rows(_STRAY_ALIASES):
        yield f"library of {user_id}: {entity_id} names an entity that is not there"
    if view.one(_NEXT_ID) <= view.one(_LAST_ID):
        yield "a serverId that is in use will be given out again"
    for md5 in sorted({md5 for md5, sha256 in view.rows(_REFERENCES) if not sha256}):
        yield f"an instrument score names the file {md5}, which is not there"


def references(view: Snapshot) -> Mapping[str, int]:
    """SHA-256 → how many live rows of this room name it."""
    return Counter(sha256 for _, sha256 in view.rows(_REFERENCES) if sha256)


def _libraries(view: Snapshot) -> Iterator[tuple[int, int]]:
    above = 0
    while page := view.rows(_LIBRARIES, above=above, limit=PAGE):
        yield from page
        above = page[-1][0]


def _library(view: Snapshot, user_id: int, version: int) -> Iterator[str]:
    rows: dict[int, Row] = {}
    holders: dict[str, int] = {}
    last = 0
    while page := view.rows(sql.PAGE, user=user_id, after=last, limit=PAGE):
        for row in page:
            for problem in _data(row):
                yield f"{_name(row)} {problem}"
            rows[row.id] = msgspec.structs.replace(row, data="")  # a library's data need not fit into memory
            if row.is_live:
                other = holders.setdefault(row.key, row.id)
                if other != row.id:
                    yield f"{_name(row)} and {other} live under one key"
        last = page[-1].version
    if last > version:
        yield f"it is at version {version}, and holds one of {last}"
    for row in rows.values():
        for problem in _parents(row, rows.get):
            yield f"{_name(row)} {problem}"


def _name(row: Row) -> str:
    return f"{WORD[Kind(row.kind)]}:{row.id}"


def _data(row: Row) -> Iterator[str]:
    """The row beside its data."""
    try:
        data = msgspec.json.decode(row.data, type=Data)
    except msgspec.MsgspecError:
        yield "has data that is no JSON object"
        return
    kind = Kind(row.kind)
    missing = [name for name in REQUIRED[kind] if name not in data]
    if missing:
        yield f"has no {', '.join(missing)}"
        return
    if row.key != key_of(kind, data):
        yield "has another key than its data says"
    if row.is_live and kind == Kind.INSTRUMENT_SCORE and row.pdf_md5 != data.get("pdfHash"):
        yield "counts another file than its data names"
    if set(parents_of(row)) != {data[field] for field, _ in PARENTS[kind]}:
        yield "has other parents than its data says"


def _parents(row: Row, known: Callable[[int], Row | None]) -> Iterator[str]:
    for parent_id, kind in ((row.score_id, Kind.SCORE), (row.setlist_id, Kind.SETLIST)):
        if parent_id is None:
            continue
        parent = known(parent_id)
        if parent is None or parent.kind != kind:
            yield f"has a parent {parent_id} that is not there"
        elif row.is_live and not parent.is_live:
            yield f"lives, and its parent {parent_id} is deleted"
