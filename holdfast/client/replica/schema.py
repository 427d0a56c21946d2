"""The replica's tables: numbered migrations, applied when it is opened."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

from holdfast.client.errors import ReplicaTooNew

VERSION = 3


def prepare(connection: sqlite3.Connection) -> None:
    """Two processes may open at once: the second finds it done."""
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _version(connection)
        if found > VERSION:
            raise ReplicaTooNew(ReplicaTooNew.__doc__)
        for number in range(found + 1, VERSION + 1):
            for statement in _statements(number):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _statements(number: int) -> list[str]:
    folder = files("holdfast.client.replica") / "migrations"
    script = next(file for file in folder.iterdir() if file.name.startswith(f"{number:04d}_"))
    lines = [line for line in script.read_text("utf-8").splitlines() if not line.startswith("--")]
    return [part for part in "\n".join(lines).split(";\n") if part.strip()]
