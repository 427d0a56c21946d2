"""The client: one replica, one server, three rooms. The one place where its parts are made, started and stopped.

open     the replica is there: everything local works                     (also without ever having been online)
start    pull all → outbox → MQTT, library, chat: as soon as somebody is logged in and no other process does it
close    what was written is on the disk; what waits goes out next time
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

from holdfast.client.account import ACCOUNT, Account
from holdfast.client.chat.chat import Chat
from holdfast.client.chat.link import ChatLink
from holdfast.client.chat.stored import CHAT
from holdfast.client.contents import Contents
from holdfast.client.feeds import set_meta
from holdfast.client.http import Http
from holdfast.client.ledger.apply import at_cursor
from holdfast.client.ledger.changes import LEDGER
from holdfast.client.ledger.ledger import Ledger
from holdfast.client.ledger.live import Live
from holdfast.client.ledger.uplink import Uplink
from holdfast.client.library.changes import LIBRARY
from holdfast.client.library.library import Library
from holdfast.client.mqtt import Place
from holdfast.client.network import Network
from holdfast.client.news import Event, LoggedOut, News, Online, Status
from holdfast.client.notes import PREFIX
from holdfast.client.replica import Replica, Transaction
from holdfast.client.tasks import Tasks
from holdfast.client.timing import Timing, first_of
from holdfast.ids import XidMaker

Transport = Literal["http", "mqtt"]

LEASE_SECONDS = 2.0
MQTT_PORT = 1883
CHAT_PORT = 9001
SETTLE_SECONDS = 0.2


class Holdfast:
    """`server` is `host:port` or a URL. `transport`: how the ledger's changes go up, over HTTP or over MQTT.
    `chat`: True, or where the chat's WebSocket is. It is off unless asked for, since the server keeps one chat
    connection for each user: a client that only does accounts must not end the one that chats."""

    def __init__(
        self,
        path: str | Path,
        *,
        server: str = "127.0.0.1:8000",
        mqtt: str | None = None,
        chat: str | bool = False,
        transport: Transport = "http",
        timing: Timing | None = None,
    ) -> None:
        self._timing = timing or Timing()
        self._transport: Transport = transport
        self._news = News()
        self._replica = Replica(Path(path))
        self._network = Network(self._timing)
        self._device_id = ""
        self._http = Http(server, self._network, lambda: self._device_id)
        self._contents = Contents(self._replica.files)
        self._account = Account(self._replica, self._http, self._timing)
        self._host = urlsplit(self._http.address).hostname or "127.0.0.1"
        self._place = Place(mqtt or f"{self._host}:{MQTT_PORT}")
        self._chat_address = _chat_address(chat, self._host)
        self._tasks = Tasks(self._timing, self._news)
        self._new_id = XidMaker(_Now(self._timing))
        self._syncing = False
        self._live: Live | None = None
        self.ledger = Ledger(
            self._replica,
            self._http,
            self._account,
            self._timing,
            self._news,
            self._contents,
            uplink=transport == "mqtt",
            new_id=self._new_id,
        )
        self.library = Library(
            self._replica, self._http, self._account, self._timing, self._news, self._contents
        )
        self.chat = Chat(self._replica, self._http, self._account, self._timing, self._news)
        self._network.on_change = self._online_changed
        self._account.on_change = self._account_changed

    # -- open and close

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """The replica, at once; what talks to the server begins behind it."""
        self._replica.open()
        self._device_id = await self._replica.write(_named_device)
        await self._account.load()
        self._tasks.start("lost", self.ledger.tell_what_was_lost)
        self._tasks.start("account", self._follow_account)
        self._tasks.start("start", self._start_when_it_can)
        if self._account.logged_in:
            self._tasks.logged_in.set()

    async def close(self) -> None:
        await self._tasks.stop()
        await self._http.close()
        self._replica.close()

    async def _start_when_it_can(self) -> None:
        """Somebody has logged in, and no other process on this replica talks to the server."""
        while not self._account.logged_in:
            await self._tasks.logged_in.wait()
        while not self._replica.lease.take():
            await self._timing.sleep(LEASE_SECONDS)
        self._start()
        await asyncio.Event().wait()

    def _start(self) -> None:
        if self._syncing:
            return
        self._syncing = True
        self._contents.clear_parts()
        ledger, tasks = self.ledger, self._tasks
        live = self._live = self._made_live()
        ledger.sync.pull_wanted.call()
        tasks.start("ledger pull", self._pull_and_verify)
        if self._transport == "http":
            tasks.start("ledger outbox", self._after_first_pull(ledger.sync.send_when_there_is_something))
        tasks.start(
            "ledger images", self._after_first_pull(ledger.images_of_bills.upload_when_there_are_some)
        )
        tasks.start("mqtt", live.connect_and_listen)
        self.library.sync.wanted.call()
        tasks.start("library", self.library.sync.sync_when_wanted)
        if self._chat_address:
            link = self.chat.link = self._made_chat_link(self._chat_address)
            tasks.start("chat", link.connect_and_talk)

    def _made_live(self) -> Live:
        kind = Uplink if self._transport == "mqtt" else Live
        live = kind(
            self._place,
            self._replica,
            self._account,
            self._network,
            self.ledger.sync,
            self._timing,
            self._device_id,
        )
        if isinstance(live, Uplink):
            live.new_id = self._new_id
        return live

    def _made_chat_link(self, address: str) -> ChatLink:
        return ChatLink(
            address,
            self._replica,
            self._account,
            self._network,
            self.chat.filling,
            self._timing,
            self._news,
            self._device_id,
        )

    def _after_first_pull(self, step: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        async def after() -> None:
            await self.ledger.sync.pulled.wait()
            await step()

        return after

    async def _pull_and_verify(self) -> None:
        await self.ledger.sync.pull_when_wanted()
        await self.ledger.sync.verify()

    # -- who

    async def register(self, username: str, password: str) -> None:
        """Makes an account and logs in. What was written before belongs to it from now on."""
        await self._account.register(username, password)

    async def login(self, username: str, password: str) -> None:
        """What was written before the first login belongs to this user from now on."""
        await self._account.log_in(username, password)

    async def logout(self) -> None:
        """What is in the replica stays, and can still be changed; it goes out after the next login."""
        await self._account.log_out()

    @property
    def user_id(self) -> str:
        """Empty before the first login."""
        return self._account.user_id

    @property
    def logged_in(self) -> bool:
        return self._account.logged_in

    # -- how things stand

    async def status(self) -> Status:
        rooms = {
            "ledger": await self.ledger.waiting(),
            "library": await self.library.waiting(),
            "chat": await self.chat.waiting(),
        }
        pulled_ms = await self._replica.read(lambda view: at_cursor(view).pulled_ms)
        return Status(
            online=self._network.online,
            logged_in=self._account.logged_in,
            user_id=self._account.user_id,
            pending=sum(room.pending for room in rooms.values()),
            parked=sum(room.parked for room in rooms.values()),
            rooms=rooms,
            last_sync_ms=pulled_ms,
            last_error=self._news.last_error,
            next_try_in=self._network.next_try_in,
            live=self._live is not None and self._live.connected,
            chat=self.chat.state,
        )

    def events(self) -> AsyncIterator[Event]:
        """What happens from now on."""
        return self._news.stream()

    def on_event(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Calls `listener` at each event; call what it answers to end that."""
        return self._news.listen(listener)

    async def note(self, **texts: str) -> None:
        """Remembers small texts of the app's own in the replica; `notes(path)` reads them."""

        def keep(tx: Transaction) -> None:
            for name, text in texts.items():
                set_meta(tx, PREFIX + name, text)

        await self._replica.write(keep)

    def network_returned(self) -> None:
        """Tell it what the operating system says: what waited for its next try goes now."""
        self._network.network_returned()

    # -- now

    async def refresh(self) -> None:
        """Sends what waits and pulls what is new, now. Raises `Offline` when the server cannot be reached."""
        if self._transport == "http":
            await self.ledger.sync.drain(at_once=True)
        await self.ledger.images_of_bills.upload_all(at_once=True)
        await self.ledger.refresh()
        await self.library.refresh()
        if self._chat_address:
            await self.chat.refresh()

    async def settled(self) -> None:
        """Until nothing waits to be sent that could be, and everything that the server had is here."""
        changed = self._replica.watch((LEDGER, LIBRARY, CHAT))
        try:
            while True:
                changed.clear()
                if self._transport == "mqtt" and await self._waits_for_mqtt():
                    await first_of(changed, self._timing.sleep(SETTLE_SECONDS))
                    continue
                await self.refresh()
                if not (await self.status()).pending:
                    return
                await first_of(changed, self._timing.sleep(SETTLE_SECONDS))
        finally:
            self._replica.unwatch(changed)

    async def _waits_for_mqtt(self) -> bool:
        """Changes of the ledger that go up by themselves, as soon as there is a connection."""
        return bool((await self.ledger.waiting()).pending)

    async def verify(self) -> bool | None:
        """Compares the replica with the server now; a difference is repaired. None: changes are on their way."""
        found = [await self.ledger.sync.verify(at_once=True), await self.library.sync.verify(at_once=True)]
        return None if None in found else all(found)

    # -- inside

    def _online_changed(self, online: bool) -> None:
        self._news.tell(Online(online))
        if online and self._syncing:
            self.ledger.sync.pull_wanted.call()
            self.library.sync.wanted.call()

    def _account_changed(self) -> None:
        if self._account.logged_in:
            self._tasks.logged_in.set()
            if self._syncing:
                self.ledger.sync.pull_wanted.call()
                self.library.sync.wanted.call()
        else:
            self._tasks.logged_in.clear()
            self._news.tell(LoggedOut("log in again to sync"))
        self._replica.tell(ACCOUNT)

    async def _follow_account(self) -> None:
        """Another process on this replica may log in or out."""
        changed = self._replica.watch((ACCOUNT,))
        try:
            while True:
                await changed.wait()
                changed.clear()
                before = self._account.logged_in
                await self._account.load()
                if self._account.logged_in != before:
                    self._account_changed()
        finally:
            self._replica.unwatch(changed)


Client = Holdfast


def _chat_address(chat: str | bool, host: str) -> str:
    """Where to connect; empty: nowhere."""
    if isinstance(chat, str):
        return chat if "://" in chat else f"ws://{chat}/ws"
    return f"ws://{host}:{CHAT_PORT}/ws" if chat else ""


def _named_device(tx: Transaction) -> str:
    """One name for this replica, for as long as it lives."""
    found = tx.value("SELECT value FROM meta WHERE name = 'device_id'")
    if found is None:
        found = secrets.token_hex(8)
        set_meta(tx, "device_id", found)
    return str(found)


class _Now:
    """The handed-in time, as the maker of ids wants it."""

    def __init__(self, timing: Timing) -> None:
        self.now_ms = timing.now_ms
        self.monotonic = timing.monotonic
