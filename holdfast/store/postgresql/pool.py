"""Connections to PostgreSQL: how they are opened, how long one waits for one, how a lost server is noticed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg_pool import ConnectionPool

from holdfast.settings import Store
from holdfast.store.postgresql.connection import Connection

WRITING = "-c default_transaction_isolation=read\\ committed -c synchronous_commit=on"
READING = "-c default_transaction_isolation=repeatable\\ read -c default_transaction_read_only=on"
LIMITS = " -c idle_in_transaction_session_timeout=60000 -c lock_timeout=10000"

LEAST_WAIT = 0.05

# A machine that vanished says nothing: without these a command would wait two hours for its answer.
NOTICE_SILENCE = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Pool:
    def __init__(self, name: str, settings: Store, options: str) -> None:
        self._patience = settings.connect_timeout
        self._lent: set[Connection] = set()
        self._connections: ConnectionPool[Connection] = ConnectionPool(
            settings.url,
            kwargs={
                "options": options + LIMITS,
                "application_name": f"holdfast {name}",
                "connect_timeout": max(2, round(settings.connect_timeout)),
                "prepare_threshold": 2,
                **NOTICE_SILENCE,
            },
            min_size=1,
            max_size=settings.pool,
            timeout=settings.connect_timeout,
            # after this the pool gives a connection up, and the next command asks for one at once
            reconnect_timeout=settings.connect_timeout,
            name=f"holdfast-{name}",
            open=True,
        )

    @contextmanager
    def connection(self, waiting_since: float) -> Iterator[Connection]:
        """A connection for one command. What the command has waited already counts: when the server is away,
        everybody who waits is answered within the same few seconds, however many they are."""
        left = self._patience - (time.perf_counter() - waiting_since)
        with self._connections.connection(timeout=max(left, LEAST_WAIT)) as connection:
            self._lent.add(connection)
            try:
                yield connection
            finally:
                self._lent.discard(connection)

    def drop_broken(self) -> None:
        """One connection was lost, the others probably too: looks at those that lie idle."""
        self._connections.check()

    def interrupt(self) -> None:
        """Whatever runs on these connections ends with an error."""
        for connection in list(self._lent):
            connection.cancel_safe(timeout=1.0)

    def close(self) -> None:
        self._connections.close(1.0)
