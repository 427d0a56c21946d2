"""A mark beside the database: somebody reads it for longer than the server's own readers may.

The writer of the server that runs beside cuts its log back when it grows long, and waits for readers to do so. They are
done within the read limit; a check or a backup is not, so while one is under way the writer does not wait. The mark is
a lock on a file, and goes with its process, however that ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _mark(database: Path) -> Path:
    return database.with_name(database.name + "-reading")


@contextmanager
def long_read(database: Path) -> Iterator[None]:
    with _mark(database).open("a") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        yield


def is_read_long(database: Path) -> bool:
    try:
        with _mark(database).open("r") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
