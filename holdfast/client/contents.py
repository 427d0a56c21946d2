"""Files by their content, beside the replica: written whole or not at all, shared by whoever refers to them.

A content is on the disk before a row refers to it; it is removed when no row does. The MD5 is the wire's name for it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from hashlib import md5
from pathlib import Path

from msgspec import Struct

from holdfast.client.errors import DamagedFile
from holdfast.client.replica.replica import fsync_folder

PIECE = 1 << 20
ABANDONED_SECONDS = 3600  # a younger one may be another process's


class Content(Struct, frozen=True):
    md5: str
    size: int
    head: bytes


class Contents:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: str) -> Path:
        return self._folder / digest

    def has(self, digest: str) -> bool:
        return self.path(digest).exists()

    def add(self, source: Path | bytes) -> Content:
        """Copies it in; blocking, for a thread."""
        digest, size, head = md5(usedforsecurity=False), 0, b""
        part = self._part()
        with part.open("wb") as out:
            for piece in _pieces(source):
                digest.update(piece)
                head = head or piece[:64]
                size += len(piece)
                out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        self._put(part, digest.hexdigest())
        return Content(digest.hexdigest(), size, head)

    async def receive(self, expected: str, pieces: AsyncIterator[bytes]) -> Path:
        """What streams in, if it is what it should be."""
        digest = md5(usedforsecurity=False)
        part = self._part()
        try:
            with part.open("wb") as out:
                async for piece in pieces:
                    digest.update(piece)
                    out.write(piece)
                out.flush()
                os.fsync(out.fileno())
            if digest.hexdigest() != expected:
                raise DamagedFile(f"a file with the MD5 {digest.hexdigest()} came for {expected}")
            self._put(part, expected)
        finally:
            part.unlink(missing_ok=True)
        return self.path(expected)

    def drop(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def held(self) -> list[str]:
        """The contents that are here."""
        if not self._folder.exists():
            return []
        return [entry.name for entry in self._folder.iterdir() if len(entry.name) == 32]

    def clear_parts(self) -> None:
        """What a crash left half written."""
        if self._folder.exists():
            for part in self._folder.glob("part-*"):
                if time.time() - part.stat().st_mtime > ABANDONED_SECONDS:
                    part.unlink(missing_ok=True)

    def _part(self) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / f"part-{secrets.token_hex(8)}"

    def _put(self, part: Path, digest: str) -> None:
        os.replace(part, self.path(digest))
        fsync_folder(self._folder)


def _pieces(source: Path | bytes) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
