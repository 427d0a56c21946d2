"""The write-ahead log as the writer sees it: how long it is, and when it is cut back to nothing.

Moving its pages into the database is the checkpointer's work. Only a moment at which nobody writes and nobody
reads from the log lets it begin anew, and the one who can make such a moment is the writer.
"""

from __future__ import annotations

import time
from pathlib import Path
from threading import Lock

import apsw

from holdfast.log import get_logger
from holdfast.store.sqlite.long_read import is_read_long

POLITE_MS = 50
AGAIN_AFTER = 0.5

log = get_logger("store")


class LogFile:
    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        checkpointing: Lock,
        *,
        cut_pages: int,
        reader_ms: int,
        busy_ms: int,
    ) -> None:
        """`reader_ms`: no reader holds its snapshot longer than this. `checkpointing`: shared with the
        checkpointer, because SQLite refuses a second checkpoint at once instead of waiting for the first."""
        connection.set_wal_hook(self._grew)
        self._connection = connection
        self._path = path
        self._checkpointing = checkpointing
        self._cut_pages = cut_pages
        self._patient_ms = 2 * reader_ms + 500  # those that keep pages back, then those that came meanwhile
        self._busy_ms = busy_ms
        self._again_at = 0.0
        self._desperate_again_at = 0.0
        self.pages = 0
        self.commits = 0
        """Commits that wrote something."""

    def _grew(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = pages
        self.commits += 1
        return apsw.SQLITE_OK

    def cut_if_long(self) -> None:
        """Between two groups. Above the mark a reader in the way costs 50 ms, then we try again a little later.

        Readers that overlap without a gap could go on like that for ever: at twice the mark the writer waits
        until those that are reading now are done or cut. New ones read from the database file alone meanwhile,
        and are not in the way. So the log stays bounded, whatever is read; but for a check or a backup, which
        reads for as long as it must, and which no writer should wait for.
        """
        if self.pages <= self._cut_pages:
            return
        desperate = self.pages > 2 * self._cut_pages
        if time.monotonic() < (self._desperate_again_at if desperate else self._again_at):
            return
        if is_read_long(self._path):
            self._later(desperate)
            return
        patience = self._patient_ms if desperate else POLITE_MS
        if not self._checkpointing.acquire(timeout=patience / 1000):
            self._not_cut(desperate)
            return
        try:
            self._connection.set_busy_timeout(patience)
            self.pages, _moved = self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            self._not_cut(desperate)
        finally:
            self._connection.set_busy_timeout(self._busy_ms)
            self._checkpointing.release()

    def _not_cut(self, desperate: bool) -> None:
        self._later(desperate)
        if desperate:
            log.warning("log_not_cut", pages=self.pages)

    def _later(self, desperate: bool) -> None:
        """A polite try that failed keeps no desperate one from being made: else the log would grow meanwhile."""
        self._again_at = time.monotonic() + AGAIN_AFTER
        if desperate:
            self._desperate_again_at = self._again_at
