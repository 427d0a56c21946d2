"""Puts the door together: sockets, connections, and the parts that serve them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus

from picows import (
    WSListener,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
    ws_create_server,
)

from holdfast.accounts.accounts import Accounts
from holdfast.addresses import BACKLOG, listening, spelled
from holdfast.chat import queries
from holdfast.chat.gateway.acknowledging import Acknowledging
from holdfast.chat.gateway.calling import Calling
from holdfast.chat.gateway.connection import GOING_AWAY, Connection
from holdfast.chat.gateway.delivery import Delivery
from holdfast.chat.gateway.desk import Desk
from holdfast.chat.gateway.doorkeeper import Doorkeeper
from holdfast.chat.gateway.listener import Listener
from holdfast.chat.gateway.online import Online
from holdfast.chat.gateway.posting import Posting
from holdfast.chat.gateway.receipts import Receipt, Receipts
from holdfast.chat.gateway.recent import Recent
from holdfast.chat.gateway.relay import Relay
from holdfast.chat.gateway.resend import Resend
from holdfast.chat.gateway.rounds import Rounds
from holdfast.chat.gateway.seats import Seats
from holdfast.chat.model import Gone, Revoked, Saved
from holdfast.chat.rate import Bucket
from holdfast.chat.reasons import Reason
from holdfast.clock import Clock
from holdfast.cluster import Cluster
from holdfast.feed.epoch import EPOCH
from holdfast.ids import IdMaker
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Settings
from holdfast.store import Database

PATH = b"/ws"
CLOSE_SECONDS = 2.0
READ_BUFFER = 2_048  # grows with what comes; an idle connection keeps little

log = get_logger("chat")
# (an adapter, since picows makes a child of a plain logger for every connection)
_quiet = logging.LoggerAdapter(logging.getLogger("picows.chat"))


class Gateway:
    def __init__(
        self,
        db: Database,
        accounts: Accounts,
        clock: Clock,
        settings: Settings,
        metrics: Metrics,
        new_id: IdMaker,
        cluster: Cluster,
    ) -> None:
        chat = settings.chat
        self._db = db
        self._accounts = accounts
        self._settings = chat
        self._where = settings.listen.ws
        self._clock = clock
        self.instance = secrets.token_hex(4)
        self.online = Online()
        self._new_id = new_id
        recent = Recent()
        self.receipts = Receipts(db, chat, metrics, self.instance, clock, self._pass_on)
        self.resend = Resend(db, chat, metrics, self.instance, self.receipts, recent)
        self.delivery = Delivery(db, chat, metrics, self.online, self.resend, self.receipts, recent)
        seats = Seats(db, self.online, single=chat.single_session)
        self._cluster = cluster
        self.relay = Relay(cluster, db, self.online, self.delivery, seats)
        self.calling = Calling(db, chat, clock, metrics, self.online, self.relay, cluster, new_id)
        self._doorkeeper = Doorkeeper(
            db, accounts, clock, self.online, seats, self.receipts, self.resend, self.relay
        )
        self._desk = Desk(
            db,
            chat,
            clock,
            metrics,
            self._doorkeeper,
            Posting(db, chat, clock, metrics, new_id, cluster),
            Acknowledging(db, chat, clock, metrics, self.receipts, recent),
            self.calling,
        )
        self._rounds = Rounds(db, chat, clock, self.online, seats, self.delivery, self.calling, cluster)
        cluster.on_back(self._rounds.compare_now)
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._closing = False
        self._all_gone = asyncio.Event()
        metrics.gauge("holdfast_chat_connections", "Chat connections", lambda: len(self.online.connections))

    @property
    def address(self) -> str | None:
        return spelled(self._listener) if self._listener is not None else None

    @property
    def epoch(self) -> str:
        return self._doorkeeper.epoch

    # -- from bind to stop, as `Service` says

    def bind(self) -> None:
        self._listener = listening(self._where)

    async def start(self) -> None:
        self._doorkeeper.epoch = await self._db.read(lambda view: view.one(EPOCH))
        self._new_id.above(await self._db.read(queries.last_id))
        await self._cluster.start(self._doorkeeper.epoch)
        self._db.subscribe(Saved, self.relay.saved)
        self._db.subscribe(Revoked, self.relay.revoked)
        self._db.subscribe(Gone, self.relay.gone)
        self._accounts.sessions.on_session_ended(self._rounds.session_ended)
        self.resend.start()
        self._rounds.start()

    async def open(self) -> None:
        assert self._listener is not None
        self._server = await ws_create_server(
            self._accept,
            sock=self._listener,
            backlog=BACKLOG,
            max_frame_size=self._settings.max_frame,
            read_buffer_init_size=READ_BUFFER,
            logger_name=_quiet,
            enable_auto_pong=False,
            use_aiofastnet=False,  # the loop's own transports: an idle connection costs 10 KiB instead of 15
        )

    async def close(self) -> None:
        """Nobody new comes in; who is here is told that we go."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        elif self._listener is not None:
            self._listener.close()
        for connection in tuple(self.online.connections):
            connection.close(GOING_AWAY)
        if self.online.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), CLOSE_SECONDS)
        for connection in tuple(self.online.connections):
            connection.abort("server_stops")

    async def stop(self) -> None:
        await self._rounds.stop()
        await self.calling.stop()
        await self.relay.stop()
        await self.resend.stop()
        await self.delivery.stop()
        await self.receipts.stop()
        await self._cluster.stop()

    def _pass_on(self, receipts: Sequence[Receipt]) -> None:
        self.relay.pass_on(receipts)

    # -- sockets

    def _accept(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener | None:
        if request.path.partition(b"?")[0] != PATH or self._closing:
            return None
        if len(self.online.connections) >= self._settings.max_connections:
            log.warning("too_many_connections", most=self._settings.max_connections)
            return _refused()
        # RFC 6455 4.2.1: a list of tokens, one of which is Upgrade (Firefox sends more); picows wants it alone
        tokens = request.headers.get("Connection", "").lower().split(",")
        if "upgrade" in [token.strip() for token in tokens]:
            request.headers["Connection"] = "Upgrade"
        return Listener(self._made, self._desk.receive, self._lost, self._settings.max_frame)

    def _made(self, transport: WSTransport) -> Connection:
        settings, loop = self._settings, asyncio.get_running_loop()
        now = loop.time()
        marks = settings.backpressure
        transport.underlying_transport.set_write_buffer_limits(
            high=marks.high, low=min(marks.low, marks.high)
        )
        peer = transport.underlying_transport.get_extra_info("peername")
        connection = Connection(
            transport,
            peer[0] if isinstance(peer, tuple) else "",
            Bucket(settings.rate.connection, settings.rate.connection_burst, now),
            now,
            settings.window,
            drop=marks.drop_when_unwritable,
            most=2 * marks.high,
            close_after=marks.close_after_ms / 1000,
            on_room=self.resend.room,
        )
        connection.auth_timer = loop.call_later(settings.auth_seconds, connection.error, Reason.AUTH_TIMEOUT)
        self.online.connections.add(connection)
        return connection

    def _lost(self, connection: Connection) -> None:
        connection.lost()
        self.online.connections.discard(connection)
        if self._closing and not self.online.connections:
            self._all_gone.set()
        if connection.user_id:
            self.online.unseat(connection)
            if not self.online.of(connection.user_id):
                self._cluster.left(connection.user_id)
            self.receipts.flush_soon()
            log.info("connection_lost", userId=connection.user_id, connId=connection.id)


def _refused() -> WSUpgradeResponseWithListener:
    return WSUpgradeResponseWithListener(
        WSUpgradeResponse.create_error_response(HTTPStatus.SERVICE_UNAVAILABLE, b""), None
    )
