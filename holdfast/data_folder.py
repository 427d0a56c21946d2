"""The data folder: who may use it, and where in it things lie."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from holdfast.errors import CannotStart


class DataFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "holdfast.db"
        self.blobs = path / "blobs"
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
        self.create()
        held = (self.path / "lock").open("a+", encoding="utf-8")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held.seek(0)
            other = held.read().strip() or "unknown"
            held.close()
            raise CannotStart(
                f"the data folder {self.path} is in use by another holdfast (process {other}): stop that one,"
                " or give this one a folder of its own with --data"
            ) from None
        held.truncate(0)
        held.write(f"{os.getpid()}\n")
        held.flush()
        self._held = held

    def unlock(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None
