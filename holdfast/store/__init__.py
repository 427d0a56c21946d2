"""Where things are kept: `Database` (write / read), SQLite, PostgreSQL, migrations.

The store knows rows, threads and commits; it must not know what any room keeps in it.
"""

from holdfast.store.database import Database, StoreReset
from holdfast.store.statement import Query, Statement
from holdfast.store.transaction import Snapshot, Transaction

__all__ = ["Database", "Query", "Snapshot", "Statement", "StoreReset", "Transaction"]
