"""Hashing what streams by: SHA-256 for us, MD5 for clients that know no other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from holdfast.blobs.model import Digest


class Digesting:
    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size = 0

    def jobs(self, piece: bytes) -> list[Callable[[], None]]:
        """What is to be done about the next piece, each on any thread: they block, and let others run while they hash."""
        self._size += len(piece)
        return [lambda: self._sha256.update(piece), lambda: self._md5.update(piece)]

    def digest(self) -> Digest:
        return Digest(self._sha256.hexdigest(), self._md5.hexdigest(), self._size)
