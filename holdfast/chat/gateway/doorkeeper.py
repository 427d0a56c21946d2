"""AUTH and REAUTH: whose connection this is, and until when.

    token → session → seat (which connection is newer) → told of pushes → what was acknowledged is written
          → where the user stands, one snapshot → open: AUTH_OK, older connections go, backlog lines up

A push that comes before the snapshot is in it; one that comes after is remembered in `early`: none falls between.
"""

from __future__ import annotations

from holdfast.accounts.accounts import Accounts
from holdfast.accounts.sessions import Session
from holdfast.chat import queries
from holdfast.chat.flow import Flow
from holdfast.chat.frames import Frame, encode
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.gateway.online import Online
from holdfast.chat.gateway.receipts import Receipts
from holdfast.chat.gateway.relay import Relay
from holdfast.chat.gateway.resend import Resend
from holdfast.chat.gateway.seats import Seats
from holdfast.chat.model import Standing
from holdfast.chat.reasons import Reason, Refusal
from holdfast.clock import Clock
from holdfast.errors import NotLoggedIn, SessionInvalid
from holdfast.log import get_logger
from holdfast.store import Database

log = get_logger("chat")


class Doorkeeper:
    def __init__(
        self,
        db: Database,
        accounts: Accounts,
        clock: Clock,
        online: Online,
        seats: Seats,
        receipts: Receipts,
        resend: Resend,
        relay: Relay,
    ) -> None:
        self._db = db
        self._accounts = accounts
        self._clock = clock
        self._online = online
        self._seats = seats
        self._receipts = receipts
        self._resend = resend
        self._relay = relay
        self.epoch = ""

    async def authenticate(self, connection: Connection, frame: Frame) -> None:
        session = await self._session(connection, frame)
        if session is None:
            return
        generation = await self._seats.take(session.user_id)
        connection.user_id = session.user_id
        connection.early = {}
        self._online.seat(connection)
        opened = False
        try:
            await self._receipts.flush_of(session.user_id)
            standings = await self._db.read(queries.standings, session.user_id)
            opened = self._open(connection, session, frame, generation, standings)
        finally:
            if not opened:
                self._online.unseat(connection)

    async def prolong(self, connection: Connection, frame: Frame) -> None:
        """A newer token for the same user: its expiry counts from now on."""
        session = await self._session(connection, frame)
        if session is None:
            return
        if session.user_id != connection.user_id:
            connection.error(Reason.REAUTH_UID_MISMATCH)
            return
        connection.session = session
        self._answer(connection)

    async def _session(self, connection: Connection, frame: Frame) -> Session | None:
        if not frame.token:
            connection.refuse(Refusal.MISSING_TOKEN)
            return None
        sessions = self._accounts.sessions
        try:
            return sessions.known(frame.token) or await sessions.verify(frame.token)
        except SessionInvalid:
            connection.refuse(Refusal.SESSION_INVALID)
        except NotLoggedIn:
            connection.refuse(Refusal.INVALID_TOKEN)
        return None

    def _open(
        self,
        connection: Connection,
        session: Session,
        frame: Frame,
        generation: int,
        standings: list[Standing],
    ) -> bool:
        if not connection.is_connected or connection.life.state is not connection.life.state.BEFORE_AUTH:
            return False
        connection.session = session
        connection.device_id = frame.device_id or ""
        connection.generation = generation
        connection.opened = connection.now()
        connection.life.authenticated()
        if connection.auth_timer is not None:
            connection.auth_timer.cancel()
            connection.auth_timer = None
        connection.stand(standings)
        self._answer(connection)
        if session.ended:  # raised while we were opening: nobody else would tell this connection
            connection.error(Reason.SESSION_INVALID)
            return False
        newest = max(generation, self._seats.newest_here(session.user_id))
        self._relay.opened(session.user_id, newest)
        self._begin(connection, standings)
        log.info(
            "connection_open", userId=session.user_id, connId=connection.id, deviceId=connection.device_id
        )
        return True

    def _begin(self, connection: Connection, standings: list[Standing]) -> None:
        """What is behind lines up for the resend; what came in between wakes."""
        early, connection.early = connection.early or {}, None
        for standing in standings:
            if standing.head > standing.delivered:
                flow = Flow(standing.conversation, standing.kind, standing.delivered, standing.head)
                connection.flows[standing.conversation] = flow
                self._resend.want(connection, flow)
        for conversation, (kind, seq) in early.items():
            flow = connection.flow(conversation, kind)
            if flow.wake(seq):
                self._resend.want(connection, flow)

    def _answer(self, connection: Connection) -> None:
        connection.send(
            encode(
                Frame(
                    type="AUTH_OK",
                    from_=str(connection.user_id),
                    ts=self._clock.now_ms(),
                    epoch=self.epoch,
                )
            )
        )
