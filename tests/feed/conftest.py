"""What only tests of locks need: a store on PostgreSQL alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import PostgresqlStores
from tests.servers.postgresql import Postgresql


@pytest.fixture
def postgresql_store(postgresql: Postgresql) -> Iterator[PostgresqlStores]:
    url = postgresql.new_database("feed_locks")
    postgresql.execute("ALTER DATABASE feed_locks SET deadlock_timeout = '30ms'")  # where one is provoked
    yield PostgresqlStores(url)
    postgresql.drop_database("feed_locks")
