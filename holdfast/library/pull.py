"""A pull: everything above `since`, written as JSON while it is read, all of it from one snapshot.

The answer is finished before its first byte is sent, so a slow reader holds no snapshot; what does not fit into some
memory waits in a temporary file. With `limit` a page ends after so many rows, and goes on at `nextSince`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from tempfile import SpooledTemporaryFile

import msgspec

from holdfast.clock import rfc3339
from holdfast.library import queries as sql
from holdfast.library.known import parents_of
from holdfast.library.model import WORD, Kind, Row
from holdfast.store import Snapshot

AT_ONCE = 1_000
IN_MEMORY = 2 * 1024 * 1024  # bytes of each part of the answer; beyond it goes to the disk
PIECE = 256 * 1024

_rfc3339 = lru_cache(maxsize=1_024)(rfc3339)


class Asked(msgspec.Struct, frozen=True):
    user_id: int
    since: int
    limit: int | None
    epoch: str | None


class Pulled:
    """An answer, ready to be sent."""

    def __init__(self, head: bytes, parts: list[bytes | SpooledTemporaryFile[bytes]], rows: int) -> None:
        self._parts = [head, *parts]
        self.rows = rows
        self.size = sum(len(part) if isinstance(part, bytes) else part.tell() for part in self._parts)

    def pieces(self) -> Iterator[bytes]:
        """Some 256 KiB each."""
        gathered = b""
        for part in self._parts:
            if isinstance(part, bytes):
                gathered += part
                continue
            part.seek(0)
            while read := part.read(PIECE):
                gathered += read
                if len(gathered) >= PIECE:
                    yield gathered
                    gathered = b""
        if gathered:
            yield gathered

    def close(self) -> None:
        for part in self._parts:
            if not isinstance(part, bytes):
                part.close()


class _Shelves:
    """The arrays of the answer, one for each kind, and the deleted keys."""

    def __init__(self) -> None:
        self._shelves = {kind: SpooledTemporaryFile[bytes](max_size=IN_MEMORY) for kind in Kind}
        self._deleted = SpooledTemporaryFile[bytes](max_size=IN_MEMORY)
        self.rows = 0

    def add(self, rows: list[Row]) -> None:
        self.rows += len(rows)
        items: dict[int, list[str]] = {kind: [] for kind in Kind}
        deleted = []
        for row in rows:
            items[row.kind].append(_item(row))
            if not row.is_live:
                deleted.append(f'"{WORD[Kind(row.kind)]}:{row.id}"')
        for kind, shelf in self._shelves.items():
            _append(shelf, items[kind])
        _append(self._deleted, deleted)

    def parts(self) -> list[bytes | SpooledTemporaryFile[bytes]]:
        found: list[bytes | SpooledTemporaryFile[bytes]] = []
        for kind, shelf in self._shelves.items():
            found += [f',"{WORD[kind]}s":['.encode(), shelf, b"]"]
        return [*found, b',"deleted":[', self._deleted, b"]}"]

    def close(self) -> None:
        for shelf in (*self._shelves.values(), self._deleted):
            shelf.close()


def _append(shelf: SpooledTemporaryFile[bytes], items: list[str]) -> None:
    if items:
        shelf.write((("," if shelf.tell() else "") + ",".join(items)).encode())


def _item(row: Row) -> str:
    return (
        f'{{"entityType":"{_WORDS[row.kind]}","serverId":{row.id},"version":{row.version},"data":{row.data},'
        f'"updatedAt":"{_rfc3339(row.updated_ms)}","isDeleted":{"false" if row.deleted_ms is None else "true"}}}'
    )


_WORDS: dict[int, str] = {int(kind): word for kind, word in WORD.items()}


def pull(view: Snapshot, asked: Asked, epoch: str) -> Pulled:
    version = view.row(sql.VERSION, user=asked.user_id) or 0
    since = asked.since
    if since > version or asked.epoch not in (None, epoch):
        since = 0
    shelves = _Shelves()
    try:
        if asked.limit is None:
            last, more = _everything(view, asked.user_id, since, shelves), False
        else:
            last, more = _one_page(view, asked.user_id, since, asked.limit, shelves)
    except BaseException:
        shelves.close()
        raise
    head = msgspec.json.encode(
        {
            "libraryVersion": version,
            "isFullSync": since == 0,
            "epoch": epoch,
            "hasMore": more,
            "nextSince": last if more else version,
        }
    )
    return Pulled(head[:-1], shelves.parts(), shelves.rows)


def _everything(view: Snapshot, user: int, since: int, shelves: _Shelves) -> int:
    while rows := _some(view, user, since, AT_ONCE):
        shelves.add(rows)
        since = rows[-1].version
    return since


def _some(view: Snapshot, user: int, since: int, most: int) -> list[Row]:
    """Rows that come next: many small ones, or few large ones (one at least), so that memory is bounded."""
    sizes = view.rows(sql.SIZES, user=user, after=since, limit=most)
    count = total = 0
    for _, size in sizes:
        total += size
        if count and total > IN_MEMORY:
            break
        count += 1
    return view.rows(sql.PAGE, user=user, after=since, limit=count) if count else []


def _one_page(view: Snapshot, user: int, since: int, limit: int, shelves: _Shelves) -> tuple[int, bool]:
    parents: set[int] = set()
    here: set[int] = set()
    left = limit
    while left and (rows := _some(view, user, since, left)):
        shelves.add(rows)
        left -= len(rows)
        since = rows[-1].version
        here.update(row.id for row in rows)
        parents.update(parent for row in rows for parent in parents_of(row))
    more = not left and bool(view.rows(sql.SIZES, user=user, after=since, limit=1))
    if more and (missing := parents - here):
        for found in _by_id(view, user, sorted(missing)):
            # parents that were changed after their children come on a later page, and already here
            shelves.add([parent for parent in found if parent.version > since])
    return since, more


def _by_id(view: Snapshot, user: int, ids: list[int]) -> Iterator[list[Row]]:
    if view.one(sql.BY_ID.weight, user=user, ids=ids) <= IN_MEMORY:
        yield view.rows(sql.BY_ID.rows, user=user, ids=ids)
    else:
        for each in ids:
            yield view.rows(sql.BY_ID.rows, user=user, ids=[each])
