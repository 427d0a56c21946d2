"""Where a command finds the store and the files that the settings name; nothing is opened yet."""

from __future__ import annotations

from pathlib import Path

import msgspec

from holdfast.blobs.place import Place
from holdfast.blobs.room import place_of
from holdfast.data_folder import DataFolder
from holdfast.settings import Settings
from holdfast.store.postgresql.whole import NewPostgresql, StandingPostgresql
from holdfast.store.sqlite.whole import NewSqlite, StandingSqlite
from holdfast.store.whole import NewStore, StandingStore


class Kept(msgspec.Struct, frozen=True):
    """All that a holdfast keeps, by its settings."""

    settings: Settings
    folder: DataFolder
    store: StandingStore

    @property
    def grace_ms(self) -> int:
        return round(self.settings.blobs.grace_hours * 3_600_000)

    def place(self) -> Place:
        return place_of(self.folder.blobs, self.settings.blobs)

    def new_store(self) -> NewStore:
        if self.settings.store.url:
            return NewPostgresql(self.settings.store.url)
        return NewSqlite(self.folder.database)


def kept_by(settings: Settings) -> Kept:
    folder = DataFolder(Path(settings.data))
    if settings.store.url:
        return Kept(settings, folder, StandingPostgresql(settings.store.url))
    return Kept(settings, folder, StandingSqlite(folder.database, folder.is_locked))
