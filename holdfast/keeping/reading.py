"""Reads a backup, from its beginning to its end; takes nothing in it on trust."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from holdfast.errors import CannotStart
from holdfast.keeping.archive import FIRST, MANIFEST, SUMS, Advance, sums
from holdfast.keeping.manifest import FORMAT, First, Manifest, TableCopied
from holdfast.keeping.rows import unpacked
from holdfast.store.statement import Value

_ROWS = re.compile(r"rows/(.+)/\d{6,}\.msgpack\.zst\Z")
_BLOB = re.compile(r"blobs/([0-9a-f]{64})\Z")

S = TypeVar("S", bound=msgspec.Struct)

PIECE = 256 * 1024
LARGEST_IN_MEMORY = 2**31 - 1


class NotWhole(CannotStart):
    """What is in the file is not what was put there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the backup is damaged or cut: {why}")


class Entry:
    """One entry of the tar, while it is the current one."""

    def __init__(self, name: str, size: int, content: IO[bytes]) -> None:
        self.name = name
        self.size = size
        self._content = content
        rows, blob = _ROWS.match(name), _BLOB.match(name)
        self.table = rows[1] if rows else None
        self.sha256 = blob[1] if blob else None

    def pieces(self) -> Iterator[bytes]:
        left = self.size
        while left:
            try:
                piece = self._content.read(min(PIECE, left))
            except tarfile.TarError as error:
                raise NotWhole(f"{self.name}: {error}") from error
            if not piece:
                raise NotWhole(f"it ends within {self.name}")
            left -= len(piece)
            yield piece

    def whole(self) -> bytes:
        if self.size > LARGEST_IN_MEMORY:
            raise NotWhole(f"{self.name} is too large")
        return b"".join(self.pieces())


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, "r:") as tar:
            yield tar
    except FileNotFoundError:
        raise CannotStart(f"there is no file {path}") from None
    except OSError as error:
        raise CannotStart(f"cannot read {path}: {error.strerror or error}") from error
    except tarfile.TarError as error:
        raise NotWhole(str(error)) from error


def _entries(path: Path) -> Iterator[Entry]:
    with _opened(path) as tar:
        while (info := tar.next()) is not None:
            content = tar.extractfile(info) if info.isreg() else None
            if content is None:
                raise NotWhole(f"{info.name} is not a file")
            yield Entry(info.name, info.size, content)
            tar.members.clear()  # type: ignore[attr-defined]  # a million of them need not be in memory


class _Sum:
    """What the entries add up to, to be held against the manifest."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[int, int]] = {}
        self._hashes: dict[str, hashlib._Hash] = {}
        self.blobs = 0
        self.blob_bytes = 0
        self.wrong: set[str] = set()
        self._names = hashlib.sha256()

    def add(self, entry: Entry) -> None:
        if entry.table is not None:
            self._add_rows(entry.table, entry.whole())
        elif entry.sha256 is not None:
            self._add_blob(entry.sha256, entry)
        else:
            raise NotWhole(f"it has an entry {entry.name!r}")

    def _add_rows(self, table: str, data: bytes) -> None:
        rows, chunks = self.tables.get(table, (0, 0))
        self._hashes.setdefault(table, hashlib.sha256()).update(data)
        try:
            self.tables[table] = (rows + len(unpacked(data)), chunks + 1)
        except ValueError as error:
            raise NotWhole(f"rows of {table}: {error}") from error

    def _add_blob(self, sha256: str, entry: Entry) -> None:
        hashed = hashlib.sha256()
        for piece in entry.pieces():
            hashed.update(piece)
        if hashed.hexdigest() != sha256:
            self.wrong.add(sha256)
        self._names.update(f"{sha256}\n".encode())
        self.blobs += 1
        self.blob_bytes += entry.size

    def compare(self, manifest: Manifest) -> None:
        for table in manifest.tables:
            if self._table(table.name) != (table.rows, table.chunks, table.sha256):
                raise NotWhole(f"the rows of {table.name} are not those of the manifest")
        if strange := self.tables.keys() - {table.name for table in manifest.tables}:
            raise NotWhole(f"it has rows of {sorted(strange)[0]}, which the manifest does not name")
        if wrong := self.wrong - set(manifest.damaged):
            raise NotWhole(f"the file {sorted(wrong)[0]} has another content")
        there = (self.blobs, self.blob_bytes, self._names.hexdigest())
        if there != (manifest.blobs, manifest.blob_bytes, manifest.blobs_sha256):
            raise NotWhole("its files are not those of the manifest")

    def _table(self, name: str) -> tuple[int, int, str]:
        return (*self.tables.get(name, (0, 0)), self._hashes.get(name, hashlib.sha256()).hexdigest())


def verified(path: Path, advance: Advance) -> Manifest:
    """Reads everything once; raises unless all of it is what was put there."""
    total, first, manifest, is_sealed = _Sum(), b"", b"", False
    for at, entry in enumerate(_entries(path)):
        if is_sealed:
            raise NotWhole("something follows its end")
        if at == 0:
            first = _known_format(entry)
        elif manifest:
            _refuse_another_seal(entry, sums(first, manifest))
            is_sealed = True
        elif entry.name == MANIFEST:
            manifest = entry.whole()
        else:
            total.add(entry)
        advance(entry.size)
    if not is_sealed:
        raise NotWhole("its end is missing")
    found = _decoded(MANIFEST, manifest, Manifest)
    total.compare(found)
    return found


def _known_format(entry: Entry) -> bytes:
    if entry.name != FIRST:
        raise CannotStart("this is not a backup of holdfast")
    data = entry.whole()
    first = _decoded(FIRST, data, First)
    if first.format > FORMAT:
        raise CannotStart(
            f"this backup is from a newer holdfast ({first.holdfast}): restore it with that version"
        )
    return data


def _refuse_another_seal(entry: Entry, expected: bytes) -> None:
    if entry.name != SUMS or entry.whole() != expected:
        raise NotWhole(f"{FIRST} or {MANIFEST} is not what was written")


def _decoded(name: str, data: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotWhole(f"{name}: {error}") from error


def tables(path: Path, manifest: Manifest) -> Iterator[tuple[TableCopied, Iterator[list[Value]]]]:
    """Each table with its rows, streamed; to be taken in turn."""
    copied = {table.name: table for table in manifest.tables}
    chunked = (entry for entry in _entries(path) if entry.table is not None)
    for name, entries in groupby(chunked, lambda entry: entry.table):
        assert name is not None
        yield copied[name], (row for entry in entries for row in unpacked(entry.whole()))


def blobs(path: Path, manifest: Manifest) -> Iterator[Entry]:
    """The files that are what their names say."""
    damaged = set(manifest.damaged)
    for entry in _entries(path):
        if entry.sha256 is not None and entry.sha256 not in damaged:
            yield entry
