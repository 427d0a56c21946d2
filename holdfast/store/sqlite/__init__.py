"""The store on SQLite: one writer thread with group commit, readers on their own connections."""

from holdfast.store.sqlite.database import SqliteDatabase

__all__ = ["SqliteDatabase"]
