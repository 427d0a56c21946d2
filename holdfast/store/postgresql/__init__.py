"""The store on PostgreSQL: a pool, one READ COMMITTED transaction per command, snapshots for reading."""

from holdfast.store.postgresql.database import PostgresqlDatabase

__all__ = ["PostgresqlDatabase"]
