"""Files in a folder of this machine: temporary name → fsync → rename → fsync of the folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.blobs.model import Kept
from holdfast.errors import DiskFull, FileGone, FilesUnavailable

READ_BYTES = 256 * 1024


@contextmanager
def in_our_words() -> Iterator[None]:
    """What the operating system says about files, as our errors."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileGone from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull from error
        raise FilesUnavailable from error


def sync_folder(folder: Path) -> None:
    """A name is on the disk when its folder is."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class DurableFolders:
    """Makes folders under `root` so that their names are on the disk too.

    A folder is synced once in each process, also one that is there already: whoever made it may have died
    between making and syncing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sure: set[Path] = set()

    def ensure(self, folder: Path) -> None:
        if folder in self._sure:
            return
        if folder != self._root:
            self.ensure(folder.parent)
            folder.mkdir(exist_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)
        self._sure.add(folder)


class DiskContent:
    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle
        self.size = os.fstat(handle).st_size

    @property
    def path(self) -> Path | None:
        # not /proc/self/fd/N: whoever opens that too late gets somebody else's file, this is merely gone
        return self._path

    def read(self, start: int, stop: int) -> Iterator[bytes]:
        while start < stop:
            with in_our_words():
                piece = os.pread(self._handle, min(READ_BYTES, stop - start), start)
            if not piece:
                raise FilesUnavailable("the file is shorter than it should be")
            yield piece
            start += len(piece)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class DiskPlace:
    """`folder` and where uploads are written must be on one file system."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folders = DurableFolders(folder)

    def keep(self, source: Path, name: str) -> None:
        target = self._folder / name
        with in_our_words():
            handle = os.open(source, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            self._folders.ensure(target.parent)
            source.rename(target)
            sync_folder(target.parent)

    def open(self, name: str) -> DiskContent:
        with in_our_words():
            path = self._folder / name
            return DiskContent(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def remove(self, names: list[str]) -> None:
        touched = set()
        with in_our_words():
            for name in names:
                path = self._folder / name
                path.unlink(missing_ok=True)
                if path.parent.is_dir():
                    touched.add(path.parent)
            for folder in touched:
                # also for a file that was gone already: whoever removed it may have died before this
                sync_folder(folder)

    def listing(self) -> Iterator[Kept]:
        for kind in ("files", "pieces"):
            for folder, _, names in os.walk(self._folder / kind):
                for name in names:
                    path = Path(folder, name)
                    try:
                        there = path.stat()
                    except FileNotFoundError:
                        continue  # it went while we walked
                    yield Kept(
                        path.relative_to(self._folder).as_posix(),
                        there.st_size,
                        there.st_mtime_ns // 1_000_000,
                    )
