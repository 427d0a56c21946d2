"""A PostgreSQL of the scenario's own: the cluster that the tests use, on the project's disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.peers.install import debian
from tests.servers.postgresql import Postgresql, binaries


@contextmanager
def cluster(folder: Path) -> Iterator[Postgresql]:
    """On a free port, with fsync and synchronous_commit on; ended by its id."""
    if binaries() is None:
        debian("initdb", "postgresql")
    found = binaries()
    assert found is not None, "debian() has installed it or has raised"
    server = Postgresql(folder / "postgresql", found)
    server.create()
    try:
        server.start()
        yield server
    finally:
        server.stop()


def wal_syncs(url: str) -> int:
    """How often this cluster has had its disk confirm the write-ahead log."""
    with psycopg.connect(url, autocommit=True) as connection:
        newest = connection.info.server_version >= 18_00_00
        asked = (
            "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
            if newest
            else "SELECT wal_sync FROM pg_stat_wal"
        )
        row = connection.execute(asked.encode()).fetchone()
    return int(row[0]) if row and row[0] is not None else 0
