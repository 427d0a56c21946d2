"""Moves the write-ahead log into the database file, beside the writer and never in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread

import apsw

from holdfast.log import get_logger
from holdfast.store.sqlite.connection import is_sync_failure, open_writer

AFTER_A_FAILURE = 1.0

log = get_logger("store")


class Checkpointer:
    def __init__(
        self, path: Path, vfs: str | None, checkpointing: Lock, on_fatal: Callable[[str], None]
    ) -> None:
        self._checkpointing = checkpointing
        self._connection = open_writer(path, vfs)
        self._on_fatal = on_fatal
        self._wake = Event()
        self._stop = Event()
        self._thread = Thread(target=self._serve, name="holdfast-checkpointer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self, timeout: float) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout)

    def _serve(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop.is_set():
                break
            try:
                with self._checkpointing:
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.BusyError:
                continue  # another process is at it
            except apsw.Error as error:
                log.error("checkpoint_failed", error=str(error))
                if is_sync_failure(error):
                    self._on_fatal("the disk could not confirm a write; the server starts over")
                    break
                self._stop.wait(AFTER_A_FAILURE)  # a full disk is not asked again at every commit
        self._connection.close()
