"""The data folder: who may use it, and where in it things lie."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import TextIO

from holdfast.errors import CannotStart

LOCK_TRIES, LOCK_PAUSE = 5, 0.02


class DataFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "holdfast.db"
        self.blobs = path / "blobs"
        self._unfinished = path / "restore-unfinished"
        self._held: TextIO | None = None

    def create(self) -> None:
        """Makes the folder if need be, for us alone: it holds secrets."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            probe = self.path / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink()
        except NotADirectoryError:
            raise CannotStart(f"the data folder {self.path} is not a folder") from None
        except FileExistsError:
            raise CannotStart(f"the data folder {self.path} is not a folder") from None
        except OSError as error:
            raise CannotStart(f"cannot write to the data folder {self.path}: {error.strerror}") from None

    def lock(self) -> None:
        """Makes this process the only server on the folder; the lock goes with the process, however it ends."""
        self._take()
        if self._unfinished.exists():
            self.unlock()
            raise CannotStart(
                f"a restore into {self.path} did not come to its end: run `holdfast restore FILE` again"
            )

    def lock_for_restore(self) -> None:
        """As `lock`. Until `restored` no server starts here, also if this process dies."""
        self._take()

    def restore_begins(self) -> None:
        self._unfinished.touch()
        sync_folder(self.path)

    def restored(self) -> None:
        self._unfinished.unlink(missing_ok=True)
        sync_folder(self.path)

    @property
    def is_half_restored(self) -> bool:
        return self._unfinished.exists()

    def is_locked(self) -> bool:
        """Some process is the server on this folder."""
        try:
            with (self.path / "lock").open("r", encoding="utf-8") as held:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def _take(self) -> None:
        self.create()
        held = (self.path / "lock").open("a+", encoding="utf-8")
        if not _locked(held):
            held.seek(0)
            other = held.read().strip() or "unknown"
            held.close()
            raise CannotStart(
                f"the data folder {self.path} is in use by another holdfast (process {other}): stop that one,"
                " or give this one a folder of its own with --data"
            )
        held.truncate(0)
        held.write(f"{os.getpid()}\n")
        held.flush()
        self._held = held

    def unlock(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _locked(held: TextIO) -> bool:
    """Tries for a moment: whoever asks `is_locked` holds it for the time of the question."""
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(LOCK_PAUSE)
    return False


def sync_folder(folder: Path) -> None:
    """A name is on the disk when its folder is."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
