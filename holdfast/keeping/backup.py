"""`backup`: everything in one file, consistent while the server runs.

    hold the files → one snapshot: all rows → snapshot ends → files, one by one → manifest → fsync → read back → rename

The snapshot lasts as long as the rows take, and SQLite's log grows by what is written meanwhile; files take longer,
and need no snapshot: they never change, and while they are held none goes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from holdfast.blobs import backup as of_blobs
from holdfast.blobs.model import Blob
from holdfast.blobs.place import Place
from holdfast.clock import Clock
from holdfast.data_folder import sync_folder
from holdfast.errors import CannotStart, FileGone
from holdfast.feed.epoch import EPOCH
from holdfast.keeping.archive import ArchiveWriter
from holdfast.keeping.hold import held
from holdfast.keeping.manifest import Manifest
from holdfast.keeping.places import Kept
from holdfast.keeping.progress import Progress
from holdfast.keeping.reading import verified
from holdfast.keeping.rows import chunks
from holdfast.keeping.schema import require_current
from holdfast.store.migrations import Migration
from holdfast.store.whole import Row, Table, Whole, count


def backup(
    kept: Kept,
    migrations: Sequence[Migration],
    target: Path,
    clock: Clock,
    progress: Progress,
    *,
    overwrite: bool = False,
) -> Manifest:
    """Writes `target`, or leaves everything as it was (but perhaps a `.part`)."""
    with kept.store.snapshot() as whole:
        require_current(whole, migrations)
    _refuse_to_overwrite(target, allowed=overwrite)
    with _part(target) as (out, part):
        with held(kept.store, clock) as hold:
            archive = ArchiveWriter(out, clock.now_ms())
            with kept.store.snapshot() as whole:
                applied = whole.applied()
                epoch = whole.view.row(EPOCH)
                _copy_rows(whole, archive, progress)
                blobs = list(of_blobs.all_blobs(whole.view))
            _copy_files(kept.place(), blobs, archive, progress)
            hold.check()
        archive.finish(kept.store.backend, epoch, applied)
        out.flush()
        os.fsync(out.fileno())
        progress.begin("reading it back", part.stat().st_size)
        manifest = verified(part, progress.advance)
        _refuse_to_overwrite(target, allowed=overwrite)
        os.replace(part, target)
        sync_folder(target.absolute().parent)
    return manifest


def _copy_rows(whole: Whole, archive: ArchiveWriter, progress: Progress) -> None:
    tables = whole.tables()
    progress.begin("rows", sum(count(whole.view, table) for table in tables))
    for table in tables:
        archive.table(table.name, [column.name for column in table.columns], _chunks(whole, table, progress))


def _chunks(whole: Whole, table: Table, progress: Progress) -> Iterator[list[Row]]:
    for chunk in chunks(whole.rows(table)):
        yield chunk
        progress.advance(len(chunk))


def _copy_files(place: Place, blobs: Sequence[Blob], archive: ArchiveWriter, progress: Progress) -> None:
    progress.begin("files", sum(blob.size for blob in blobs))
    for blob in blobs:
        try:
            content = place.open(blob.name)
        except FileGone:
            archive.lost(blob.sha256)
            continue
        try:
            archive.blob(blob.sha256, blob.size, content.read(0, blob.size), progress.advance)
        finally:
            content.close()


def _refuse_to_overwrite(target: Path, *, allowed: bool) -> None:
    if target.is_dir():
        raise CannotStart(f"{target} is a folder: name a file in it")
    if target.exists() and not allowed:
        raise CannotStart(f"{target} exists: choose another name, or overwrite it with --force")


@contextmanager
def _part(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """`FILE.part`, for us alone: it holds secrets, and another backup may be writing it."""
    part = target.with_name(target.name + ".part")
    try:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotStart(f"cannot write {part}: {error.strerror}") from None
    with os.fdopen(handle, "wb") as out:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(f"another backup is writing {part}") from None
        out.truncate(0)
        try:
            yield out, part
        except BaseException:
            part.unlink(missing_ok=True)
            raise
