"""Where files are: the contract that the disk and the object stores keep alike.

A file's name is used once: it is put there whole, read, removed, and never written again. That is all the protocol
asks, so nothing here needs a conditional write, a lock or a listing that is up to date, and every S3-compatible
store will do. Calls block; the room makes them on its own threads. A place knows names and bytes, not what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from holdfast.blobs.model import Kept


class Content(Protocol):
    """One file, open for reading. It stays readable when its name is removed meanwhile."""

    size: int

    @property
    def path(self) -> Path | None:
        """Where the same bytes, or nothing any more, can be opened; None when they are not on this machine."""

    def read(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from `start` up to `stop`, in pieces."""

    def close(self) -> None: ...


class Place(Protocol):
    def keep(self, source: Path, name: str) -> None:
        """Moves the finished file into place, whole or not at all; when it returns the file survives a power cut.

        `source` may be gone afterwards. Raises `FilesUnavailable` or `DiskFull`.
        """

    def open(self, name: str) -> Content:
        """Raises `FileGone`, or `FilesUnavailable`."""

    def remove(self, names: list[str]) -> None:
        """Removes for good those that are there; one that is not there is no error."""

    def listing(self) -> Iterator[Kept]:
        """Every file that is here, in no order."""
