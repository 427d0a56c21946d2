"""The one place where everything is built and wired, started and stopped.

build: settings → metrics, clock → store → rooms → doors        (nothing runs yet)
start: sockets bound → data folder locked → store migrated → rooms → services → doors open → ready
stop:  doors take nothing new → requests under way end → rooms → store finishes its commits → closed
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from litestar.types import ASGIApp

from holdfast import feed
from holdfast.accounts import http as accounts_http
from holdfast.accounts.accounts import Accounts
from holdfast.addresses import is_loopback
from holdfast.blobs import BlobRoom
from holdfast.broker.room import BrokerRoom
from holdfast.chat.room import ChatRoom
from holdfast.chores import Chore, Chores
from holdfast.clock import Clock, SystemClock
from holdfast.data_folder import DataFolder
from holdfast.http import health, idempotency
from holdfast.http.door import Door
from holdfast.http.routes import application
from holdfast.http.server import HttpServer
from holdfast.ledger.room import LedgerRoom
from holdfast.library.room import LibraryRoom
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database
from holdfast.store.migrations import of_rooms
from holdfast.store.opening import database_of

ROOMS = (
    "store",
    "http",
    "accounts",
    "feed",
    "blobs",
    "ledger",
    "library",
    "chat",
    "broker",
)
DAY_MS = 24 * 3600 * 1000

log = get_logger("app")


def open_database(settings: Settings, folder: DataFolder, metrics: Metrics) -> Database:
    """The store that the settings name, not yet started."""
    return database_of(settings.store, folder.database, metrics)


def registration_is_open(settings: Settings) -> bool:
    """A server that only this machine can reach may let anyone register; any other one is asked to say so."""
    if settings.auth.registration == "auto":
        return is_loopback(settings.listen.http)
    return settings.auth.registration == "open"


class App:
    """A whole server in one process."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.metrics = Metrics()
        self.folder = DataFolder(Path(settings.data))
        self.db = open_database(settings, self.folder, self.metrics)
        self.accounts = Accounts(
            self.db,
            settings.auth,
            self.clock,
            self.metrics,
            registration_open=registration_is_open(settings),
        )
        self.blobs = BlobRoom(self.db, self.folder.blobs, self.clock, settings.blobs, self.metrics)
        self.broker = BrokerRoom(self.db, self.accounts, self.clock, settings, self.metrics, self.folder)
        self.ledger = LedgerRoom(self.db, self.blobs, self.clock, settings, self.metrics, self.broker)
        self.library = LibraryRoom(self.db, self.blobs, self.clock, settings, self.metrics)
        self.chat = ChatRoom(self.db, self.accounts, self.clock, settings, self.metrics)
        self._services: tuple[Service, ...] = (self.broker, self.ledger, self.library, self.chat)
        for service in self._services:
            for rules in service.topic_rules():
                self.broker.ask(rules)
        self._chores = Chores(
            Chore("feed tombstones", settings.feed.sweep_minutes * 60, self._sweep_feed),
            Chore("idempotency keys", 600.0, self._sweep_keys),
            *(chore for service in self._services for chore in service.chores()),
        )
        self._running = False

    async def start(self) -> None:
        """Opens everything, or raises `CannotStart` with nothing half started."""
        settings = self.settings
        async with AsyncExitStack() as undo:
            self._http = HttpServer(settings.listen.http, settings.http, self.metrics)
            undo.push_async_callback(self._http.stop)
            for service in self._services:
                undo.push_async_callback(service.close)
                service.bind()
            self.folder.lock()
            undo.callback(self.folder.unlock)
            await self.db.start(of_rooms(*ROOMS))
            undo.push_async_callback(self.db.stop)
            await self.db.write(feed.ensure_epoch)
            await self.accounts.start()
            undo.push_async_callback(self.accounts.stop)
            await self.blobs.start()
            undo.push_async_callback(self.blobs.stop)
            for service in self._services:
                undo.push_async_callback(service.stop)
                await service.start()
            self._chores.start()
            undo.push_async_callback(self._chores.stop)
            for service in self._services:
                await service.open()
            await self._http.start(self._http_app())
            undo.pop_all()
        self._running = True

    async def stop(self) -> None:
        self._running = False
        await self._http.stop()
        for service in reversed(self._services):
            await service.close()
        await self._chores.stop()
        for service in reversed(self._services):
            await service.stop()
        await self.blobs.stop()
        await self.accounts.stop()
        await self.db.stop()
        self.folder.unlock()

    @property
    def addresses(self) -> dict[str, str]:
        """Each door's real address, for people and for the ready file."""
        found = {"http": self._http.address}
        for service in self._services:
            found.update(service.addresses)
        return found

    def read_again(self) -> None:
        """Takes what the operator changed in files that are read at the start: certificates."""
        for service in self._services:
            service.read_again()

    def trouble(self) -> str | None:
        """Why no traffic should come at the moment, or None."""
        if not self._running:
            return "starting or stopping"
        return self.db.trouble

    async def _sweep_feed(self) -> int:
        keep_ms = self.settings.feed.tombstone_days * DAY_MS
        return await self.db.write_in_turns(feed.sweep, self.clock.now_ms(), keep_ms)

    async def _sweep_keys(self) -> int:
        return await self.db.write_in_turns(idempotency.sweep, self.clock.now_ms())

    def _http_app(self) -> ASGIApp:
        settings = self.settings
        routers = [
            health.router(self.metrics, self.trouble),
            accounts_http.router(self.accounts, self.db, self.clock),
            *(router for service in self._services for router in service.routers()),
        ]
        routes = application(routers, settings.limits)
        return Door(routes, self.accounts.sessions, self.clock, self.metrics, settings.http, settings.limits)
