"""Stores that are measured in a process of their own: ours and the bare drivers, on SQLite and on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from bench.load.task import Task
from bench.peers import postgresql
from bench.processes import Talker, talker
from bench.scenario import Values

OURS, PLAIN = "bench.load.store", "bench.load.plain"
SLACK_SECONDS = 60.0
COUNTED_SECONDS = 1.0
ENDED_SECONDS = 0.5  # for a backend to notice that its client is gone


class Store(Struct, frozen=True):
    talker: Talker
    counted: Callable[[Task], Values]
    """The same task on a fresh store that counts its fsyncs, and so must not be timed."""

    def ask(self, task: Task) -> Values:
        return self.talker.ask(task, dict[str, float], task.seconds + SLACK_SECONDS)


@contextmanager
def on_sqlite(module: str, folder: Path) -> Iterator[Store]:
    def counted(task: Task) -> Values:
        path = folder / f"counted-{time.monotonic_ns()}.db"
        with talker(module, folder / "log", "sqlite", str(path), "--count-syncs") as counting:
            return counting.ask(task, dict[str, float], task.seconds + SLACK_SECONDS)

    with talker(module, folder / "log", "sqlite", str(folder / "store.db")) as measured:
        yield Store(measured, counted)


@contextmanager
def on_postgresql(module: str, folder: Path) -> Iterator[Store]:
    with postgresql.cluster(folder) as server:
        url = server.new_database("bench")
        with talker(module, folder / "log", "postgresql", url) as measured:
            yield Store(measured, partial(_counted_by_server, module, folder))


def _counted_by_server(module: str, folder: Path, task: Task) -> Values:
    """On a cluster of its own, in a process that ends: a backend reports the last it counted only then."""
    with postgresql.cluster(folder / f"counted-{time.monotonic_ns()}") as server:
        url = server.new_database("bench")
        time.sleep(ENDED_SECONDS)
        before = postgresql.wal_syncs(url)
        with talker(module, folder / "log", "postgresql", url) as counting:
            values = counting.ask(task, dict[str, float], task.seconds + SLACK_SECONDS)
        time.sleep(ENDED_SECONDS)
        return {**values, "syncs": (postgresql.wal_syncs(url) - before) / values["done"]}


def start(backend: str, module: str) -> Callable[[Path], AbstractContextManager[Store]]:
    return partial(on_sqlite if backend == "sqlite" else on_postgresql, module)
