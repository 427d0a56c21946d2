"""The same statements with nothing around them: one connection, one thread, one commit each. The callers take turns.

python -m bench.load.plain (sqlite FILE | postgresql URL) [--count-syncs]
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from itertools import count

import apsw
import psycopg

from bench.load import rows, task
from bench.load.store import SPREAD
from bench.load.syncs import COUNTING, CountingVfs
from bench.load.task import Task
from bench.scenario import Values


class Plain(ABC):
    syncs = 0

    @abstractmethod
    def add(self, number: int) -> None: ...

    @abstractmethod
    def one(self, number: int) -> None: ...

    @abstractmethod
    def page(self, number: int) -> None: ...

    @abstractmethod
    def fill(self) -> None: ...


class PlainSqlite(Plain):
    def __init__(self, path: str, vfs: CountingVfs | None) -> None:
        self._vfs = vfs
        self._connection = apsw.Connection(path, vfs=COUNTING if vfs else None)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute(rows.MIGRATION.sql("sqlite"))

    def add(self, number: int) -> None:
        self._connection.execute(rows.ADD.sqlite, _row(number))

    def one(self, number: int) -> None:
        self._connection.execute(rows.ONE.sqlite, {"id": number}).fetchone()

    def page(self, number: int) -> None:
        self._connection.execute(rows.PAGE.sqlite, {"id": number}).fetchall()

    def fill(self) -> None:
        with self._connection:
            self._connection.executemany(rows.PUT.sqlite, map(_row, range(rows.FILLED)))

    @property
    def syncs(self) -> int:  # type: ignore[override]
        return self._vfs.syncs if self._vfs is not None else 0


class PlainPostgresql(Plain):
    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.execute(rows.MIGRATION.sql("postgresql").encode())
        self._add, self._one, self._page = (s.postgresql.encode() for s in (rows.ADD, rows.ONE, rows.PAGE))

    def add(self, number: int) -> None:
        self._connection.execute(self._add, _row(number))

    def one(self, number: int) -> None:
        self._connection.execute(self._one, {"id": number}).fetchone()

    def page(self, number: int) -> None:
        self._connection.execute(self._page, {"id": number}).fetchall()

    def fill(self) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(rows.PUT.postgresql.encode(), map(_row, range(rows.FILLED)))


def _row(number: int) -> dict[str, int | str]:
    return {"id": number, "owner": number % 97, "body": rows.BODY}


def answer(plain: Plain, ids: count[int], asked: Task) -> Values:
    match asked.kind:
        case "fill":
            plain.fill()
            return {}
        case "writes":
            once = plain.add
        case "reads" | "glances":
            once = plain.one
        case "pages":
            once = plain.page
        case "paced writes":
            return {}
    syncs, done = plain.syncs, 0
    started, used = time.perf_counter(), time.process_time()
    end = started + asked.seconds
    while time.perf_counter() < end:
        if asked.kind == "writes":
            once(next(ids))
        else:
            once(done * SPREAD % (rows.FILLED - 100))
        done += 1
    took = time.perf_counter() - started
    values = {"rate": done / took, "cpu": (time.process_time() - used) / done * 1e6, "done": float(done)}
    if asked.kind == "writes":
        values["commits"] = 1.0
        values["syncs"] = (plain.syncs - syncs) / done
    return values


def main(backend: str, where: str, *flags: str) -> None:
    vfs = CountingVfs() if "--count-syncs" in flags else None
    plain = PlainSqlite(where, vfs) if backend == "sqlite" else PlainPostgresql(where)
    ids = count(rows.FIRST_NEW)
    task.serve(lambda asked: answer(plain, ids, asked))


if __name__ == "__main__":
    main(*sys.argv[1:])
