"""Which database the settings mean."""

from __future__ import annotations

from pathlib import Path

from holdfast.metrics import Metrics
from holdfast.settings import Store
from holdfast.store.database import Database
from holdfast.store.postgresql import PostgresqlDatabase
from holdfast.store.sqlite import SqliteDatabase


def database_of(settings: Store, file: Path, metrics: Metrics) -> Database:
    """The store that the settings name, not yet started; `file` is where SQLite keeps it."""
    if settings.url:
        return PostgresqlDatabase(settings, metrics)
    return SqliteDatabase(file, settings, metrics)
