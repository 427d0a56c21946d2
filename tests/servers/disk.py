"""A disk that loses what was not synced, and that fails on demand: an SQLite VFS under the real store.

All calls go through to real files, so that locks and shared memory are real. Beside them each file keeps a
shadow: what has been synced, and what was written since. `image` writes the files as they would be found after a
power failure at this moment, into another folder, while the load goes on.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from enum import Enum
from itertools import count, pairwise
from pathlib import Path

import apsw

_names = count(1)

WAL_OR_JOURNAL = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class Loss(Enum):
    """What a power failure does to what was written and not synced."""

    ALL = "nothing unsynced survives"
    TORN_512 = "of each write some sectors of 512 bytes survive, in any mixture"
    TORN_4096 = "of each write some sectors of 4096 bytes survive, in any mixture"
    SOME = "whole writes survive or not, in any mixture"


class Change:
    """One write (`data`) or truncation (None) at an offset."""

    __slots__ = ("at", "data")

    def __init__(self, at: int, data: bytes | None) -> None:
        self.at, self.data = at, data

    def apply(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.at :]
            return
        if len(content) < self.at:
            content.extend(bytes(self.at - len(content)))
        content[self.at : self.at + len(self.data)] = self.data

    def pieces(self, sector: int) -> list[Change]:
        """The write as a disk sees it, cut at the borders of its sectors."""
        if self.data is None:
            return [self]
        cuts = [0, *range(sector - self.at % sector, len(self.data), sector), len(self.data)]
        return [Change(self.at + start, self.data[start:end]) for start, end in pairwise(cuts) if start < end]


class Shadow:
    """One file as the disk has it."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.since: list[Change] = []
        self.named = False  # its entry in the folder was synced

    def after(self, loss: Loss, chance: random.Random) -> bytes:
        content = bytearray(self.synced)
        if loss is not Loss.ALL:
            sector = {Loss.TORN_512: 512, Loss.TORN_4096: 4096, Loss.SOME: 1 << 30}[loss]
            survive = chance.random()
            for change in self.since:
                for piece in change.pieces(sector):
                    if chance.random() < survive:
                        piece.apply(content)
        return bytes(content)


class Disk(apsw.VFS):
    """Use `name` as the `vfs` of connections. `on_write` and `on_sync` may raise an `apsw.Error` instead."""

    def __init__(self, *, sync_seconds: float = 0.0) -> None:
        self.name = f"disk{next(_names)}"
        self.syncs: Counter[str] = Counter()  # by the name of the file
        self.on_write: Callable[[str], None] = lambda _name: None
        self.on_sync: Callable[[str], None] = lambda _name: None
        self._sync_seconds = sync_seconds
        self._shadows: dict[str, Shadow] = {}
        self._deleted: dict[str, Shadow] = {}
        """Files that are gone, but whose folder was not synced since: a power failure may bring them back."""
        self._lock = threading.Lock()
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        opened = _File(self, path, name, flags)
        if path is not None:
            with self._lock:
                self._shadows.setdefault(path, Shadow())
        return opened

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        with self._lock:
            shadow = self._shadows.pop(filename, None)
            if shadow is not None and shadow.named:
                self._deleted[filename] = shadow
            if syncdir:
                self._folder_synced()

    def change(self, path: str, change: Change) -> None:
        with self._lock:
            self._shadows[path].since.append(change)

    def sync(self, path: str, *, folder_too: bool) -> None:
        """Only what was written before the sync began is certain to be there when it ends."""
        with self._lock:
            shadow = self._shadows[path]
            covered = len(shadow.since)
        if self._sync_seconds:
            time.sleep(self._sync_seconds)
        with self._lock:
            self.syncs[Path(path).name] += 1
            for change in shadow.since[:covered]:
                change.apply(shadow.synced)
            del shadow.since[:covered]
            if folder_too:
                self._folder_synced()

    def _folder_synced(self) -> None:
        self._deleted.clear()
        for shadow in self._shadows.values():
            shadow.named = True

    def image(self, folder: Path, loss: Loss, chance: random.Random) -> None:
        """Into `folder`: the files as the machine would find them when it lost its power now."""
        folder.mkdir(parents=True)
        with self._lock:
            for path, shadow in self._deleted.items():
                if chance.random() < 0.5:
                    (folder / Path(path).name).write_bytes(shadow.after(loss, chance))
            for path, shadow in self._shadows.items():
                if shadow.named or chance.random() < 0.5:
                    (folder / Path(path).name).write_bytes(shadow.after(loss, chance))


class _File(apsw.VFSFile):
    def __init__(
        self, disk: Disk, path: str | None, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk, self._path = disk, path
        # SQLite syncs the folder together with the first sync of a log or a journal that it opened
        self._folder_too = bool(flags[0] & WAL_OR_JOURNAL)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._path is not None:
            self._disk.on_write(self._path)
            self._disk.change(self._path, Change(offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        if self._path is not None:
            self._disk.change(self._path, Change(newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._path is not None:
            self._disk.on_sync(self._path)
            self._disk.sync(self._path, folder_too=self._folder_too)
            self._folder_too = False


def no_room() -> apsw.Error:
    return apsw.FullError("the disk is full (a test says so)")


def io_error(extended: int) -> apsw.Error:
    error = apsw.IOError("the disk failed (a test says so)")
    error.result, error.extendedresult = apsw.SQLITE_IOERR, extended
    return error
