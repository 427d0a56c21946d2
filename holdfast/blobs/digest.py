"""Hashing what streams by: SHA-256 for us, MD5 for clients that know no other."""

from __future__ import annotations

import hashlib

from holdfast.blobs.model import Digest


class Digesting:
    """Calls block, and let other threads run while they hash. The two sums may be brought forward by two threads."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size = 0

    def update(self, pieces: list[bytes]) -> None:
        self.update_sha256(pieces)
        self.update_md5(pieces)

    def update_sha256(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self._sha256.update(piece)
            self._size += len(piece)

    def update_md5(self, pieces: list[bytes]) -> None:
        for piece in pieces:
            self._md5.update(piece)

    def digest(self) -> Digest:
        return Digest(self._sha256.hexdigest(), self._md5.hexdigest(), self._size)
