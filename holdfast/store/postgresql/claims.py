"""What one process does alone among those that share a PostgreSQL: held as advisory locks of a connection of our own.

The server lets go of them when that connection ends, however its process ended. When the connection breaks and the
process lives on, the locks are taken again; if another process was quicker, this one must start over.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

import psycopg

from holdfast.log import get_logger
from holdfast.store.postgresql.connection import Connection
from holdfast.store.postgresql.pool import NOTICE_SILENCE

LOOK_SECONDS = 1.0
PATIENCE = 5.0  # a process that was just killed may still be in the server's books
# the server notices a machine that vanished within this, not after two hours
_OPTIONS = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"

log = get_logger("store")


def _key(name: str) -> int:
    digest = hashlib.sha256(f"holdfast {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class Claims:
    """`on_lost` hears, on a thread of ours, which claim another process has taken meanwhile."""

    def __init__(self, url: str, connect_seconds: float, on_lost: Callable[[str], None]) -> None:
        self._url = url
        self._connect_seconds = connect_seconds
        self._on_lost = on_lost
        self._names: set[str] = set()
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._watcher: threading.Thread | None = None

    def take(self, name: str) -> bool:
        """Waits a moment for a predecessor to be gone; False when somebody holds it."""
        give_up = time.monotonic() + PATIENCE
        while True:
            with self._lock:
                if name in self._names:
                    return True
                if self._lock_it(name):
                    self._names.add(name)
                    break
            if time.monotonic() > give_up:
                return False
            self._ending.wait(0.1)
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="holdfast-claims", daemon=True)
            self._watcher.start()
        return True

    def end(self) -> None:
        self._ending.set()
        if self._watcher is not None:
            self._watcher.join()
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _lock_it(self, name: str) -> bool:
        if self._connection is None:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=max(2, round(self._connect_seconds)),
                application_name="holdfast claims",
                options=_OPTIONS,
                keepalives_idle=NOTICE_SILENCE["keepalives_idle"],
                keepalives_interval=NOTICE_SILENCE["keepalives_interval"],
                keepalives_count=NOTICE_SILENCE["keepalives_count"],
                tcp_user_timeout=NOTICE_SILENCE["tcp_user_timeout"],
            )
        return self._connection.execute("SELECT pg_try_advisory_lock(%s)", (_key(name),)).fetchone() == (
            True,
        )

    def _watch(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            with self._lock:
                if self._is_alive():
                    continue
                try:
                    lost = [name for name in sorted(self._names) if not self._lock_it(name)]
                except psycopg.Error:
                    self._forget()
                    continue  # the server is away; nobody else can have them either
            if lost:
                self._on_lost(lost[0])
                return
            log.info("claims_taken_again", names=sorted(self._names))

    def _is_alive(self) -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self._forget()
            return False
        return True

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
