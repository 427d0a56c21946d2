"""What a blob is, and how its file is named. Pure: knows neither databases nor disks."""

from __future__ import annotations

import re

import msgspec

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class Digest(msgspec.Struct, frozen=True):
    """What content is known by. The key is SHA-256; MD5 is for clients that only know that one."""

    sha256: str
    md5: str
    size: int


class Blob(msgspec.Struct, frozen=True):
    """Content that is kept, and the file that holds it. Fields in the order of the row."""

    sha256: str
    md5: str
    size: int
    name: str
    refs: int
    created_ms: int
    orphan_since_ms: int | None

    @property
    def etag(self) -> str:
        """Strong: the same bytes, always."""
        return f'"{self.sha256}"'


class Partial(msgspec.Struct, frozen=True):
    """An upload that continues where it stopped. Fields in the order of the row."""

    id: str
    holder: str
    most: int
    length: int | None
    received: int
    note: str
    expires_ms: int
    sha256: str | None
    """What it became, once it is finished."""

    @property
    def room(self) -> int:
        """How many bytes it still takes."""
        return (self.most if self.length is None else self.length) - self.received


class Orphaned(msgspec.Struct, frozen=True):
    """Event: nothing refers to this blob any more; unless somebody claims it, it can go."""

    sha256: str


class Condemned(msgspec.Struct, frozen=True):
    """Event: a file is to be removed."""

    name: str


class Kept(msgspec.Struct, frozen=True):
    """One file as the place lists it."""

    name: str
    size: int
    modified_ms: int


def is_sha256(text: str) -> bool:
    return _SHA256.match(text) is not None


def blob_name(sha256: str, once: str) -> str:
    """The name of a file with this content. `once` was never used before, so neither was the name: whoever
    removes a file by its name cannot remove a later one with the same content."""
    return f"files/{sha256[:2]}/{sha256}.{once}"


def piece_name(once: str) -> str:
    return f"pieces/{once[-2:]}/{once}"


def hash_in_name(name: str) -> str | None:
    """The SHA-256 that a file's name promises, if it is the file of a blob."""
    last = name.rpartition("/")[2].partition(".")[0]
    return last if is_sha256(last) else None
