"""What comes round: expired tokens, idle writers, silent readers, seats taken elsewhere, heads that a lost push hid."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.accounts.model import SessionsEnded
from holdfast.chat import queries
from holdfast.chat.frames import Frame, encode
from holdfast.chat.gateway import calling
from holdfast.chat.gateway.calling import Calling
from holdfast.chat.gateway.connection import GOING_AWAY, Connection
from holdfast.chat.gateway.delivery import Delivery
from holdfast.chat.gateway.online import Online
from holdfast.chat.gateway.seats import LOOK_SECONDS, Seats
from holdfast.chat.model import Kind
from holdfast.chat.queries import Behind
from holdfast.chat.reasons import Reason
from holdfast.clock import Clock
from holdfast.cluster import Cluster
from holdfast.errors import HoldfastError, SessionInvalid
from holdfast.log import get_logger
from holdfast.settings.chat import Chat
from holdfast.store import Database

TICK_SECONDS = 1.0
ROUTES_SECONDS = 30.0
AT_ONCE = 200  # users whose conversations are compared in one read

log = get_logger("chat")


class Rounds:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        clock: Clock,
        online: Online,
        seats: Seats,
        delivery: Delivery,
        phones: Calling,
        cluster: Cluster,
    ) -> None:
        self._db = db
        self._settings = settings
        self._clock = clock
        self._online = online
        self._seats = seats
        self._delivery = delivery
        self._calling = phones
        self._cluster = cluster
        self._ping = encode(Frame(type="PING"))
        self._compare_now = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._look_at_connections(), name="chat: connections"),
            asyncio.create_task(self._again(LOOK_SECONDS, self._seats.look), name="chat: seats"),
            asyncio.create_task(self._compare_heads(), name="chat: heads"),
            asyncio.create_task(self._again(calling.LOOK_SECONDS, self._calling.look), name="chat: calls"),
            asyncio.create_task(self._again(ROUTES_SECONDS, self._say_who_is_here), name="chat: routes"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def compare_now(self) -> None:
        """Pushes may have been lost, and seats taken unheard."""
        self._compare_now.set()

    def session_ended(self, event: SessionsEnded) -> None:
        for connection in self._online.of(event.user_id):
            if connection.session is not None and connection.session.ended:
                connection.error(Reason.SESSION_INVALID)

    # -- each second

    async def _look_at_connections(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now, now_ms = asyncio.get_running_loop().time(), self._clock.now_ms()
            for connection in tuple(self._online.connections):
                self._look(connection, now, now_ms)

    def _look(self, connection: Connection, now: float, now_ms: int) -> None:
        session = connection.session
        if session is not None and connection.is_open and (over := session.why_over(now_ms)) is not None:
            ended = isinstance(over, SessionInvalid)
            connection.error(Reason.SESSION_INVALID if ended else Reason.TOKEN_EXPIRED)
        elif now - connection.heard > self._settings.silence_seconds:
            log.info("reader_silent", connId=connection.id, userId=connection.user_id)
            connection.close(GOING_AWAY)
        elif now - connection.wrote > self._settings.ping_seconds:
            connection.send(self._ping)

    # -- what other processes, or lost pushes, have left us to find

    async def _again(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._try(work)

    async def _compare_heads(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.compare_seconds):
                    await self._compare_now.wait()
            except TimeoutError:
                pass
            self._compare_now.clear()
            await self._try(self._compare)

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except HoldfastError as error:
            log.warning("round_failed", error=error.reason)
        except Exception:
            # the next round may succeed, and without it a lost push would stay lost
            log.exception("round_failed")

    async def _say_who_is_here(self) -> None:
        self._cluster.still_here(tuple(self._online.users))

    async def _compare(self) -> None:
        await self._seats.look()
        every = not self._settings.single_session
        users = list(self._online.users)
        for at in range(0, len(users), AT_ONCE):
            for row in await self._db.read(queries.behind, users[at : at + AT_ONCE], every=every):
                self._wake(row)

    def _wake(self, row: Behind) -> None:
        connections = [
            connection
            for connection in self._online.of(row.user_id)
            if connection.is_open and connection.flow(row.conversation, row.kind).sent < row.head
        ]
        if not connections:
            return
        mode = self._delivery.mode(row.conversation, row.members) if row.kind == Kind.GROUP else "push"
        if mode == "push":
            self._delivery.wake(connections, row.conversation, row.kind, row.head)
        elif mode == "notify":
            self._delivery.notify(connections, row.conversation, 0, row.head, 0)
