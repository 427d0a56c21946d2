"""What one process does alone among those that share a PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast.store.postgresql import claims
from tests.conftest import OpenStore
from tests.contract.notes import NOTES
from tests.servers.postgresql import Postgresql
from tests.servers.stores import PostgresqlStores

END_CLAIMS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast claims'"
)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "PATIENCE", 0.3)
    monkeypatch.setattr(claims, "LOOK_SECONDS", 0.05)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - a thread does it, and does not tell
            await asyncio.sleep(0.01)


async def test_a_claim_asked_for_twice_is_one(open_store: OpenStore) -> None:
    async with open_store([NOTES]) as db:
        assert await db.claim("the tower")
        assert await db.claim("the tower")


async def test_a_second_process_has_what_is_left_until_the_first_is_gone(
    postgresql_stores: PostgresqlStores,
) -> None:
    async with postgresql_stores([NOTES]) as second:
        async with postgresql_stores([NOTES]) as first:
            assert await first.claim("the tower")
            assert not await second.claim("the tower")
            assert await second.claim("the gate")
        assert await second.claim("the tower")


async def test_a_claim_whose_connection_breaks_is_taken_again(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores
) -> None:
    async with postgresql_stores([NOTES]) as first, postgresql_stores([NOTES]) as second:
        fatal: list[str] = []
        first.on_fatal = fatal.append
        assert await first.claim("the tower")
        before = first._claims._connection  # type: ignore[attr-defined]
        postgresql.execute(END_CLAIMS)
        await until(lambda: first._claims._connection not in (None, before))  # type: ignore[attr-defined]
        await asyncio.to_thread(first._claims._lock.acquire)  # type: ignore[attr-defined]
        first._claims._lock.release()  # type: ignore[attr-defined]
        assert not await second.claim("the tower")
        assert fatal == []


async def test_who_lost_a_claim_to_another_process_starts_over(
    postgresql: Postgresql, postgresql_stores: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with postgresql_stores([NOTES]) as first, postgresql_stores([NOTES]) as second:
        fatal: list[str] = []
        first.on_fatal = fatal.append
        assert await first.claim("the tower")
        # the first one looks away for long enough
        await asyncio.to_thread(first._claims._lock.acquire)  # type: ignore[attr-defined]
        postgresql.execute(END_CLAIMS)
        while not await second.claim("the tower"):
            pass
        first._claims._lock.release()  # type: ignore[attr-defined]
        await until(lambda: bool(fatal))
        assert "the tower" in fatal[0]
