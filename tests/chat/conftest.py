"""A chat room on a real store behind a real socket, and phones to talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from litestar.routes import HTTPRoute

from holdfast import feed
from holdfast.accounts import Accounts
from holdfast.accounts.model import Grant
from holdfast.chat import actions, group_actions, group_queries, queries
from holdfast.chat.check import problems
from holdfast.chat.group_actions import NewGroup
from holdfast.chat.http.governing import new_codes
from holdfast.chat.model import Draft, Kind, Member, Target
from holdfast.chat.room import ChatRoom
from holdfast.clock import Clock, SystemClock
from holdfast.http.door import Door
from holdfast.http.routes import application
from holdfast.http.server import HttpServer
from holdfast.metrics import Metrics
from holdfast.settings import Auth, Http, Limits, Settings, Store
from holdfast.settings.chat import Chat, Rate
from holdfast.settings.doors import Listen
from holdfast.store import Database
from holdfast.store.migrations import of_rooms
from holdfast.store.sqlite import SqliteDatabase
from tests.chat.phone import Phone
from tests.conftest import OpenStore
from tests.servers.stores import SqliteStores

CHEAP = Auth(argon2_memory_kib=8, argon2_passes=1)
MIGRATIONS = of_rooms("store", "http", "accounts", "feed", "chat")
PLENTY = Rate(1_000_000, 1_000_000, 1_000_000, 1_000_000)
_group_ids = count(10**15)
_names = count(1)
_far_ids = count(10**16, 1_000)
# (no look at the heads comes to the rescue of a push that was forgotten)
QUICK = Chat(rate=PLENTY, ack_batch_ms=5, compare_seconds=3_600.0, auth_seconds=60.0)


class House:
    """One process: store, accounts, chat, its HTTP door."""

    def __init__(self, db: Database, accounts: Accounts, room: ChatRoom, metrics: Metrics, web: str) -> None:
        self.db = db
        self.accounts = accounts
        self.room = room
        self.metrics = metrics
        self.web = web
        self.ws = room.addresses["ws"]

    @staticmethod
    def new_id() -> int:
        return next(_far_ids)

    async def user(self, name: str = "") -> int:
        return (await self.accounts.add_user(name or f"user-{next(_names)}", "correct horse")).id

    async def users(self, count: int) -> list[int]:
        return [await self.user() for _ in range(count)]

    def token(self, user: int, sv: int = 1) -> str:
        return self.accounts.tokens.issue(Grant(user, "somebody", sv))

    def phone(self, user: int, *, acks: bool = True, device: str = "") -> Phone:
        return Phone(self.ws, self.token(user), acks=acks, device=device)

    @asynccontextmanager
    async def http(self, user: int) -> AsyncIterator[httpx.AsyncClient]:
        headers = {"authorization": f"Bearer {self.token(user)}"}
        async with httpx.AsyncClient(base_url=f"http://{self.web}", headers=headers, timeout=30) as client:
            yield client

    @property
    def paths(self) -> list[tuple[str, str]]:
        """Every HTTP address of the room: method and path."""
        return [
            (method, route.path)
            for router in self.room.routers()
            for route in router.routes
            if isinstance(route, HTTPRoute)
            for method in sorted(route.methods - {"OPTIONS"})
        ]

    async def member(self, conversation: int, user: int) -> Member | None:
        return await self.db.read(lambda view: view.row(queries.MEMBER, conversation=conversation, user=user))

    async def pair(self, one: int, other: int) -> int:
        found = await self.db.read(queries.pair, min(one, other), max(one, other))
        assert found is not None
        return found

    async def group(self, owner: int, *others: int, name: str = "choir") -> int:
        new = NewGroup(next(_group_ids), name, owner, others, new_codes(), 1)
        return await self.db.write(group_actions.create, new, 100_000)

    async def join(self, group: int, user: int) -> None:
        code = await self.db.read(lambda view: view.one(group_queries.GROUP, id=group).code)
        await self.db.write(group_actions.join, code, user, 1, 100_000)

    async def leave(self, group: int, user: int) -> None:
        await self.db.write(group_actions.leave, group, user)

    async def save(self, sender: int, group: int, body: str) -> None:
        """Straight into the log and out to whoever is online."""
        target, key = Target(group, Kind.GROUP, 0), self.new_id()
        draft = Draft(key, f"saved-{key}", "TEXT", body, 1)
        (kept,) = await self.db.write(actions.send, target, sender, [draft])
        assert isinstance(kept, actions.Kept)

    async def cursor_in(self, conversation: int, user: int) -> tuple[int, int]:
        member = await self.member(conversation, user)
        assert member is not None
        return member.delivered, member.read

    async def cursor_of(self, user: int, peer: int) -> tuple[int, int]:
        """How far the user has received and read what the two said."""
        member = await self.member(await self.pair(user, peer), user)
        assert member is not None
        return member.delivered, member.read

    async def problems(self) -> list[str]:
        return await self.db.read(lambda view: list(problems(view)))


async def until(true: Callable[[], Any], seconds: float = 40.0) -> None:
    """Waits for a condition; an awaitable one is asked again and again."""
    async with asyncio.timeout(seconds):
        while True:
            found = true()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.005)


class NewStores(SqliteStores):
    """Another new store each time."""

    def make(self, settings: Store = Store(), metrics: Metrics | None = None) -> SqliteDatabase:
        self.path = self.path.with_name(f"{next(_group_ids)}.db")
        return super().make(settings, metrics)


class OpenHouse:
    """Opens a process on the test's store: again for a restart, or twice for two of them."""

    def __init__(self, open_store: OpenStore) -> None:
        self.backend = open_store.backend
        self._open_store = open_store

    @asynccontextmanager
    async def __call__(
        self,
        chat: Chat = QUICK,
        *,
        clock: Clock | None = None,
        store: Store = Store(),
        auth: Auth = CHEAP,
        on: Callable[[Database], Database] = lambda db: db,
        **sections: Any,
    ) -> AsyncIterator[House]:
        """`on`: puts something between the room and its store."""
        clock = clock or SystemClock()
        metrics = Metrics()
        settings = Settings(chat=chat, listen=Listen(ws="127.0.0.1:0"), auth=auth, **sections)
        async with self._open_store(MIGRATIONS, store, metrics) as db:
            await db.write(feed.ensure_epoch)
            accounts = Accounts(db, auth, clock, metrics, registration_open=True)
            await accounts.start()
            room = ChatRoom(on(db), accounts, clock, settings, metrics)
            room.bind()
            await room.start()
            await room.open()
            limits = msgspec.structs.replace(Limits(), requests=1_000_000)
            routes = application([*room.routers()], limits)
            web = HttpServer("127.0.0.1:0", Http(), metrics)
            await web.start(Door(routes, accounts.sessions, clock, metrics, Http(), limits))
            try:
                yield House(db, accounts, room, metrics, web.address)
            finally:
                await web.stop()
                await room.close()
                await room.stop()
                await accounts.stop()


@pytest.fixture
def open_house(open_store: OpenStore) -> OpenHouse:
    return OpenHouse(open_store)


@pytest.fixture
async def house(open_house: OpenHouse) -> AsyncIterator[House]:
    async with open_house() as opened:
        yield opened


@pytest.fixture
def sqlite_open(tmp_path: Path) -> OpenHouse:
    """Where the database makes no difference; each time on a new store."""
    return OpenHouse(NewStores(tmp_path))


@pytest.fixture
async def sqlite_house(sqlite_open: OpenHouse) -> AsyncIterator[House]:
    async with sqlite_open() as opened:
        yield opened


@pytest.fixture
async def sqlite_cursors(sqlite_open: OpenHouse) -> AsyncIterator[House]:
    """One for all the examples of a random test."""
    async with sqlite_open() as opened:
        yield opened
