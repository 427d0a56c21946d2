"""A backup as a file: one tar, which any tar can list and unpack.

    holdfast.json                           which format this is
    rows/<table>/000001.msgpack.zst         tables, parents first
    blobs/<sha256>                          files, in the order of their hashes
    manifest.json                           what must be in it, with checksums
    SHA256SUMS                              of holdfast.json and manifest.json, for `sha256sum --check`; the last entry

Every byte that matters is under a checksum: rows by the manifest, files by their names, the manifest by the last
entry. This module writes such a file, `reading` reads it.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Final

import msgspec

from holdfast import __version__
from holdfast.errors import HoldfastError
from holdfast.keeping.manifest import FORMAT, First, Manifest, TableCopied
from holdfast.keeping.rows import packed
from holdfast.store.whole import Row

FIRST: Final = "holdfast.json"
MANIFEST: Final = "manifest.json"
SUMS: Final = "SHA256SUMS"

Advance = Callable[[int], None]


def sums(first: bytes, manifest: bytes) -> bytes:
    """What the last entry holds."""
    named = ((first, FIRST), (manifest, MANIFEST))
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for data, name in named).encode()


class _Padded(io.RawIOBase):
    """What a file's pieces are, up to `size`; zeros where they fail to come, so that the tar stays one."""

    def __init__(self, pieces: Iterator[bytes], size: int, advance: Advance) -> None:
        self._pieces = pieces
        self._left = size
        self._advance = advance
        self._ahead = b""
        self._ended = False
        self.hashed = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Always as many bytes as were asked for, until `size` is reached."""
        wanted = self._left if size < 0 else min(size, self._left)
        while len(self._ahead) < wanted:
            self._ahead += self._next_piece() or bytes(wanted - len(self._ahead))
        piece, self._ahead = self._ahead[:wanted], self._ahead[wanted:]
        self._left -= wanted
        self.hashed.update(piece)
        self._advance(wanted)
        return piece

    def _next_piece(self) -> bytes:
        if self._ended:
            return b""
        try:
            piece = next(self._pieces, b"")
        except HoldfastError:
            piece = b""
        self._ended = not piece
        return piece


class ArchiveWriter:
    def __init__(self, out: IO[bytes], now_ms: int) -> None:
        self._tar = tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - `finish`
        self._now = now_ms // 1000
        self._tables: list[TableCopied] = []
        self._blobs = hashlib.sha256()
        self.count = 0
        self.bytes = 0
        self.damaged: list[str] = []
        self._first = msgspec.json.encode(First(FORMAT, __version__))
        self._add(FIRST, self._first)

    def table(self, name: str, columns: Iterable[str], chunks: Iterable[Sequence[Row]]) -> int:
        """Answers how many rows it had."""
        rows, number, hashed = 0, 0, hashlib.sha256()
        for number, chunk in enumerate(chunks, start=1):
            data = packed(chunk)
            hashed.update(data)
            self._add(f"rows/{name}/{number:06}.msgpack.zst", data)
            rows += len(chunk)
        self._tables.append(TableCopied(name, tuple(columns), rows, number, hashed.hexdigest()))
        return rows

    def blob(self, sha256: str, size: int, pieces: Iterator[bytes], advance: Advance) -> None:
        """A file that is not what its name says goes in as it is, and is listed as damaged."""
        content = _Padded(pieces, size, advance)
        self._add_stream(f"blobs/{sha256}", size, content)
        self._blobs.update(f"{sha256}\n".encode())
        self.count += 1
        self.bytes += size
        if content.hashed.hexdigest() != sha256:
            self.damaged.append(sha256)

    def lost(self, sha256: str) -> None:
        """There is no file for this blob."""
        self.damaged.append(sha256)

    def finish(self, backend: str, epoch: str | None, migrations: dict[str, int]) -> Manifest:
        manifest = Manifest(
            FORMAT,
            __version__,
            self._now * 1000,
            backend,
            epoch,
            migrations,
            tuple(self._tables),
            self.count,
            self.bytes,
            self._blobs.hexdigest(),
            tuple(self.damaged),
        )
        data = msgspec.json.format(msgspec.json.encode(manifest))
        self._add(MANIFEST, data)
        self._add(SUMS, sums(self._first, data))
        self._tar.close()
        return manifest

    def _add(self, name: str, data: bytes) -> None:
        self._add_stream(name, len(data), io.BytesIO(data))

    def _add_stream(self, name: str, size: int, content: io.RawIOBase | io.BytesIO) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, self._now, 0o600
        self._tar.addfile(info, content)
        self._tar.members.clear()  # type: ignore[attr-defined]  # a million of them need not be in memory
