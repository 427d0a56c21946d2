"""What an app wants to remember beside its data: where its server is, what was shown last. Small texts under names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

PREFIX = "note."


def notes(path: str | Path) -> dict[str, str]:
    """Read before a client is made, since they may say where its server is; nothing if there is no replica yet."""
    if not Path(path).exists():
        return {}
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT name, value FROM meta WHERE name LIKE ?", (f"{PREFIX}%",))
        return {str(name)[len(PREFIX) :]: str(value) for name, value in found}
    except sqlite3.OperationalError:
        return {}  # another process is making it
    finally:
        connection.close()
