"""Who of several processes on one replica talks to the server. The others write locally, and the one sends it.

A lock on a file beside the replica, held through SQLite so that it works wherever SQLite does; it ends with the process.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path


class Lease:
    def __init__(self, replica: Path) -> None:
        self._path = replica.with_name(replica.name + ".sync")
        self._connection: sqlite3.Connection | None = None

    @property
    def held(self) -> bool:
        return self._connection is not None

    def take(self) -> bool:
        """False: another process has it."""
        if self._connection is not None:
            return True
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=0, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            connection.close()
            return False
        self._connection = connection
        return True

    def leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
