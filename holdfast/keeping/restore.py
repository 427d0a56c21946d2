"""`restore`: fills an empty place from a backup, on either database.

    verify the whole file → lock the folder → empty? → tables as the backup's store had them → rows
        → what has changed since then (migrations) → what is different after a restore (epoch, sv, blobs) → files
        → the store appears, in one step

Before the last step there is no store; a server does not start on what a crash leaves, and a second try begins anew.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast import feed
from holdfast.accounts.actions import outdate_access_tokens
from holdfast.blobs import backup as of_blobs
from holdfast.blobs.references import find
from holdfast.clock import Clock
from holdfast.data_folder import DataFolder
from holdfast.errors import CannotStart
from holdfast.keeping import reading
from holdfast.keeping.manifest import Manifest, migrations_of
from holdfast.keeping.places import Kept
from holdfast.keeping.progress import Progress
from holdfast.store.migrations import Migration
from holdfast.store.whole import NewStore


def restore(
    kept: Kept,
    migrations: Sequence[Migration],
    source: Path,
    clock: Clock,
    progress: Progress,
    *,
    replace: bool = False,
) -> Manifest:
    """`replace`: what is in the folder is moved aside first (SQLite only)."""
    progress.begin("reading the backup", _size(source))
    manifest = reading.verified(source, progress.advance)
    there = migrations_of(manifest, migrations)
    folder = kept.folder
    folder.lock_for_restore()
    try:
        _make_room(kept, replace=replace)
        store = kept.new_store()
        try:
            folder.restore_begins()
            store.migrate(there, clock.now_ms())
            _load_rows(store, source, manifest, progress)
            store.migrate(migrations, clock.now_ms())
            feed.new_epoch(store.tx)
            outdate_access_tokens(store.tx)
            of_blobs.begin_again(store.tx, clock.now_ms())
            _put_files(kept, store, source, manifest, progress)
            store.finish()
            folder.restored()
        finally:
            store.give_up()
    finally:
        folder.unlock()
    return manifest


def _size(source: Path) -> int | None:
    return source.stat().st_size if source.exists() else None


def _make_room(kept: Kept, *, replace: bool) -> None:
    """The folder is locked by us."""
    folder = kept.folder
    if folder.is_half_restored:  # whatever is here came from a backup that is still there
        shutil.rmtree(folder.blobs, ignore_errors=True)
        return
    if kept.store.backend == "postgresql":
        _refuse_if_served(kept, replace=replace)
    old = _what_is_there(folder)
    if not old:
        return
    if not replace:
        raise CannotStart(
            f"{folder.path} is not empty: restore into a new folder, or move what is there aside with --force"
        )
    aside = folder.path / time.strftime("replaced-%Y%m%d-%H%M%S")
    aside.mkdir()
    for path in old:
        path.rename(aside / path.name)


def _refuse_if_served(kept: Kept, *, replace: bool) -> None:
    if replace:
        raise CannotStart(
            "--force moves a data folder aside, not a PostgreSQL database: restore into a new one"
        )
    if kept.store.is_served():  # perhaps from another machine, where nobody sees our folder's lock
        raise CannotStart("a server is running on this database: stop it first")


def _what_is_there(folder: DataFolder) -> list[Path]:
    """The store and its files, but no empty folders."""
    beside = [folder.database.with_name(folder.database.name + end) for end in ("-wal", "-shm", "-reading")]
    found = [path for path in (folder.database, *beside) if path.exists()]
    if any(path.is_file() for path in folder.blobs.rglob("*")):
        found.append(folder.blobs)
    return found


def _load_rows(store: NewStore, source: Path, manifest: Manifest, progress: Progress) -> None:
    progress.begin("rows", manifest.rows)
    here = {table.name: table for table in store.tables()}
    for table in reversed(store.tables()):
        store.empty(table)
    for copied, rows in reading.tables(source, manifest):
        if copied.name not in here:
            raise CannotStart(f"the backup has a table that its own schema does not: {copied.name}")
        progress.advance(store.load(here[copied.name], copied.columns, rows))


def _put_files(kept: Kept, store: NewStore, source: Path, manifest: Manifest, progress: Progress) -> None:
    progress.begin("files", manifest.blob_bytes)
    place = kept.place()
    arriving = kept.folder.blobs / "incoming"
    arriving.mkdir(parents=True, exist_ok=True)
    for entry in reading.blobs(source, manifest):
        assert entry.sha256 is not None
        blob = find(store.tx, entry.sha256)
        if blob is None:
            raise CannotStart(f"the backup has a file that no row names: {entry.sha256}")
        part = arriving / entry.sha256
        with part.open("wb") as out:
            for piece in entry.pieces():
                out.write(piece)
                progress.advance(len(piece))
        os.chmod(part, 0o600)
        place.keep(part, blob.name)
        part.unlink(missing_ok=True)
