"""Where a connection's frames arrive: limited, read, queued, and handled one after another.

    bytes → rate → frame → nothing under way: at once, where no commit is needed
                         → else the connection's queue (64; more is `server_busy`) → its worker, in order

Acknowledgements of what was written here only move numbers in memory: they pass the queue by, and those that we
asked for by writing a message do not count against the rate.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from holdfast.chat import actions
from holdfast.chat.frames import CannotRead, Frame, decode, encode, id_of
from holdfast.chat.gateway.acknowledging import Acknowledging, said
from holdfast.chat.gateway.calling import Calling
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.gateway.doorkeeper import Doorkeeper
from holdfast.chat.gateway.posting import LONGEST_RUN, Posting, address_of
from holdfast.chat.rate import Bucket
from holdfast.chat.reasons import Reason, Refused
from holdfast.chat.states import State, Step
from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database

MOST_BUCKETS = 100_000
COUNTED_PER_USER = (Step.SEND, Step.REVOKE, Step.CALL)

log = get_logger("chat")


class Desk:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        clock: Clock,
        metrics: Metrics,
        doorkeeper: Doorkeeper,
        posting: Posting,
        acknowledging: Acknowledging,
        calling: Calling,
    ) -> None:
        self._db = db
        self._settings = settings
        self._clock = clock
        self._doorkeeper = doorkeeper
        self._posting = posting
        self._acknowledging = acknowledging
        self._calling = calling
        self._users: OrderedDict[int, Bucket] = OrderedDict()
        self._frames = metrics.counter("holdfast_chat_frames", "Frames from clients", "type")
        self._errors = metrics.counter("holdfast_chat_errors", "Frames answered with an error", "reason")

    def receive(self, connection: Connection, data: bytes) -> None:
        """A text frame's bytes, on the loop's thread."""
        if connection.life.state is State.CLOSING:
            return
        now = asyncio.get_running_loop().time()
        try:
            frame = decode(data)
        except CannotRead:
            if self._is_within_rate(connection, None, now):
                self._refuse(connection, Reason.BAD_JSON, None)
            return
        if not self._is_within_rate(connection, frame, now):
            return
        if frame.type == "ACK" and connection.is_open and self._ack_from_memory(connection, frame):
            self._frames.add("ACK")
            return
        if connection.pending:
            self._queue(connection, frame)
        else:
            self._meet(connection, frame)

    # -- limits

    def _is_within_rate(self, connection: Connection, frame: Frame | None, now: float) -> bool:
        if frame is not None and frame.type == "ACK" and connection.credit:
            connection.credit -= 1
            return True
        within = connection.bucket.spend(now)
        if within and frame is not None and connection.is_open:
            step = connection.life.meet(frame.type)
            if step in COUNTED_PER_USER:
                within = self._bucket(connection.user_id, now).spend(now)
        if not within:
            self._refuse(connection, Reason.TOO_MANY_REQUESTS, frame)
        return within

    def _bucket(self, user: int, now: float) -> Bucket:
        bucket = self._users.get(user)
        if bucket is None:
            rate = self._settings.rate
            bucket = self._users[user] = Bucket(rate.user, rate.user_burst, now)
            while len(self._users) > MOST_BUCKETS:
                self._users.popitem(last=False)
        return bucket

    # -- in order

    def _queue(self, connection: Connection, frame: Frame) -> None:
        if connection.pending >= self._settings.queue:
            self._refuse(connection, Reason.SERVER_BUSY, frame)
            return
        if connection.inbox is None:
            connection.inbox = deque()
        connection.inbox.append(frame)
        connection.pending += 1
        if connection.working is None:
            connection.working = asyncio.get_running_loop().create_task(self._work(connection))

    def _meet(self, connection: Connection, frame: Frame) -> None:
        """Nothing is under way: what needs no waiting is done at once."""
        met = connection.life.meet(frame.type)
        match met:
            case Reason():
                self._count(frame)
                self._refuse(connection, met, frame)
            case Step.PONG:
                self._count(frame)
                connection.send_if_it_keeps_up(encode(Frame(type="PONG", ts=self._clock.now_ms())))
            case Step.NOTHING:
                self._count(frame)
            case _:
                self._queue(connection, frame)

    async def _work(self, connection: Connection) -> None:
        try:
            while connection.inbox:
                run = self._take_run(connection, connection.inbox)
                try:
                    await self._handle(connection, run)
                finally:
                    connection.pending -= len(run)
        finally:
            connection.working = None
            connection.pending = 0
            connection.inbox = None

    def _take_run(self, connection: Connection, inbox: deque[Frame]) -> list[Frame]:
        """The next frame, and the messages right behind it that go to the same conversation."""
        first = inbox.popleft()
        run = [first]
        if connection.life.meet(first.type) is Step.SEND:
            address = address_of(first)
            while inbox and len(run) < LONGEST_RUN and address_of(inbox[0]) == address:
                run.append(inbox.popleft())
        return run

    async def _handle(self, connection: Connection, run: list[Frame]) -> None:
        first = run[0]
        try:
            await self._do(connection, run)
        except Refused as refused:
            self._refuse(connection, refused.reason, first)
        except Unavailable as error:
            log.warning("frame_not_handled", type=first.type, error=error.reason, connId=connection.id)
            for frame in run:
                self._refuse(connection, Reason.SERVER_BUSY, frame)
        except Exception:
            log.exception("frame_failed", type=first.type, connId=connection.id)
            for frame in run:
                self._refuse(connection, Reason.INTERNAL_ERROR, frame)

    async def _do(self, connection: Connection, run: list[Frame]) -> None:
        frame = run[0]
        met = connection.life.meet(frame.type)
        for one in run:
            self._count(one)
        match met:
            case Reason():
                self._refuse(connection, met, frame)
            case Step.AUTHENTICATE:
                await self._doorkeeper.authenticate(connection, frame)
            case Step.REAUTHENTICATE | Step.PROLONG:
                await self._doorkeeper.prolong(connection, frame)
            case Step.PONG:
                connection.send_if_it_keeps_up(encode(Frame(type="PONG", ts=self._clock.now_ms())))
            case Step.SEND:
                await self._posting.post(connection, run)
            case Step.ACKNOWLEDGE:
                await self._acknowledge(connection, frame)
            case Step.REVOKE:
                await self._revoke(connection, frame)
            case Step.CALL:
                await self._calling.signal(connection, frame)
            case Step.NOTHING:
                pass

    # -- what needs few lines

    def _ack_from_memory(self, connection: Connection, frame: Frame) -> bool:
        try:
            return self._acknowledging.from_memory(connection, said(frame))
        except Refused:
            return False  # said again, and answered, in its turn

    async def _acknowledge(self, connection: Connection, frame: Frame) -> None:
        ack = said(frame)
        if not self._acknowledging.from_memory(connection, ack):
            await self._acknowledging.from_log(connection, ack)

    async def _revoke(self, connection: Connection, frame: Frame) -> None:
        if not frame.server_msg_id:
            raise Refused(Reason.MISSING_SERVER_MSG_ID)
        message = id_of(frame.server_msg_id)
        if message is None:
            raise Refused(Reason.BAD_SERVER_MSG_ID)
        now_ms = self._clock.now_ms()
        limit_ms = self._settings.revoke_seconds * 1000
        revoked = await self._db.write(actions.revoke, message, connection.user_id, now_ms, limit_ms)
        connection.send(
            encode(
                Frame(
                    type="ACK",
                    ack_type="revoked",
                    client_msg_id=frame.client_msg_id,
                    server_msg_id=frame.server_msg_id,
                    msg_seq=str(revoked.seq),
                    ts=now_ms,
                )
            )
        )

    def _refuse(self, connection: Connection, reason: Reason, frame: Frame | None) -> None:
        self._errors.add(reason.value)
        if frame is None:
            connection.error(reason)
        else:
            connection.error(reason, frame.client_msg_id, frame.server_msg_id)

    def _count(self, frame: Frame) -> None:
        known = frame.type in KNOWN_TYPES
        self._frames.add(frame.type if known else "other")


KNOWN_TYPES = frozenset(
    ("AUTH", "REAUTH", "PING", "PONG", "ACK", "SINGLE_CHAT", "GROUP_CHAT", "MESSAGE_REVOKE")
)
