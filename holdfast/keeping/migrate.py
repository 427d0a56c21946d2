"""`migrate`: brings the store up to date without serving."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.keeping.places import Kept
from holdfast.store import Database
from holdfast.store.migrations import Migration


async def migrate(kept: Kept, db: Database, migrations: Sequence[Migration]) -> list[Migration]:
    """Answers what was applied. A SQLite store is migrated by its one server, or while there is none."""
    alone = db.backend == "sqlite"
    if alone:
        kept.folder.lock()
    try:
        before = _applied(kept)
        await db.start(migrations)
        await db.stop()
    finally:
        if alone:
            kept.folder.unlock()
    return [m for m in migrations if m.number > before.get(m.room, 0)]


def _applied(kept: Kept) -> dict[str, int]:
    if kept.store.backend == "sqlite" and not kept.folder.database.exists():
        return {}
    with kept.store.snapshot() as whole:
        return whole.applied()
