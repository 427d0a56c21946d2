"""Accounts on a real store, with hashes that cost next to nothing and a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import msgspec
import pytest

from holdfast.accounts import Accounts
from holdfast.clock import Clock, ManualClock
from holdfast.settings import Auth
from holdfast.store import Database
from holdfast.store.migrations import of_rooms
from tests.conftest import OpenStore

CHEAP = Auth(argon2_memory_kib=8, argon2_passes=1)
MIGRATIONS = of_rooms("store", "http", "accounts")
HERE = "192.0.2.1"
PASSWORD = "correct horse"


class OpenAccounts(Protocol):
    """Opens accounts on the test's store: again for a restart, or twice for two processes."""

    clock: ManualClock

    def __call__(
        self, settings: Auth = ..., clock: Clock | None = ...
    ) -> AbstractAsyncContextManager[Accounts]: ...

    def on(
        self, db: Database, settings: Auth = ..., clock: Clock | None = ...
    ) -> AbstractAsyncContextManager[Accounts]: ...


class AccountsOpener:
    def __init__(self, open_store: OpenStore) -> None:
        self._open_store = open_store
        self.clock = ManualClock()

    @asynccontextmanager
    async def __call__(self, settings: Auth = CHEAP, clock: Clock | None = None) -> AsyncIterator[Accounts]:
        async with self._open_store(MIGRATIONS) as db, self.on(db, settings, clock) as accounts:
            yield accounts

    @asynccontextmanager
    async def on(
        self, db: Database, settings: Auth = CHEAP, clock: Clock | None = None
    ) -> AsyncIterator[Accounts]:
        accounts = Accounts(db, settings, clock or self.clock, registration_open=True)
        await accounts.start()
        try:
            yield accounts
        finally:
            await accounts.stop()


@pytest.fixture
def open_accounts(open_store: OpenStore) -> OpenAccounts:
    return AccountsOpener(open_store)


@pytest.fixture
async def accounts(open_accounts: OpenAccounts) -> AsyncIterator[Accounts]:
    async with open_accounts() as opened:
        yield opened


@pytest.fixture
def clock(open_accounts: OpenAccounts) -> ManualClock:
    return open_accounts.clock


def with_settings(**changes: object) -> Auth:
    return msgspec.structs.replace(CHEAP, **changes)
