"""What a backup says about itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.errors import CannotStart
from holdfast.store.migrations import Migration

FORMAT = 1


class First(msgspec.Struct, frozen=True):
    """The first thing in the file: whether there is a point in reading on."""

    format: int
    holdfast: str


class TableCopied(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    rows: int
    chunks: int
    sha256: str
    """Of all its chunks, one after the other."""


class Manifest(msgspec.Struct, frozen=True):
    """The last thing in the file: without it the file is not whole."""

    format: int
    holdfast: str
    made_ms: int
    backend: str
    epoch: str | None
    migrations: dict[str, int]
    """How far each room was migrated."""
    tables: tuple[TableCopied, ...]
    blobs: int
    blob_bytes: int
    blobs_sha256: str
    """Of the blobs' hashes, a line each, in their order."""
    damaged: tuple[str, ...] = ()
    """Blobs whose files were missing or wrong already when the backup was made."""

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


def migrations_of(manifest: Manifest, known: Sequence[Migration]) -> list[Migration]:
    """Those of ours that the backup's store had; refuses a backup that we are too old for."""
    latest: dict[str, int] = {}
    for migration in known:
        latest[migration.room] = max(latest.get(migration.room, 0), migration.number)
    refuse_newer(manifest.migrations, latest)
    return [m for m in known if m.number <= manifest.migrations.get(m.room, 0)]


def refuse_newer(there: Mapping[str, int], known: Mapping[str, int]) -> None:
    for room, number in sorted(there.items()):
        if room not in known:
            raise CannotStart(f"this backup has a room that this holdfast does not: {room}")
        if number > known[room]:
            raise CannotStart(
                f"this backup is from a newer holdfast (its {room} is at {number}, this one knows {known[room]}):"
                " restore it with the newer version"
            )
