"""How far a store is migrated, against what this build knows."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import CannotStart
from holdfast.store.migrations import Migration
from holdfast.store.whole import Whole


def require_current(whole: Whole, migrations: Sequence[Migration]) -> None:
    """A command that knows what rows mean works on exactly the schema that it knows."""
    applied = whole.applied()
    if not applied:
        raise CannotStart(
            "there is no holdfast in this database yet: `holdfast serve` or `holdfast migrate` makes one"
        )
    for migration in migrations:
        if migration.number > applied.get(migration.room, 0):
            raise CannotStart(f"this store lacks the migration {migration}: run `holdfast migrate` first")
    latest = {migration.room: migration.number for migration in migrations}
    for room, number in applied.items():
        if number > latest.get(room, number):
            raise CannotStart(
                f"this store is from a newer holdfast (its {room} is at {number}, this one knows {latest[room]}):"
                " use the newer version"
            )
