"""ACK: which message, whose cursor. What was written on this connection is found in memory, the rest in the log."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from holdfast.chat import queries, rules
from holdfast.chat.actions import Audit
from holdfast.chat.flow import Flow
from holdfast.chat.frames import Frame, id_of
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.gateway.receipts import Ack, Receipts
from holdfast.chat.gateway.recent import Recent
from holdfast.chat.model import AckType, Place
from holdfast.chat.reasons import Reason, Refused
from holdfast.clock import Clock
from holdfast.metrics import Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database


class Said(Struct, frozen=True):
    """A client's acknowledgement that makes sense by itself."""

    ack_type: str
    message: int


def said(frame: Frame) -> Said:
    if not frame.ack_type:
        raise Refused(Reason.MISSING_ACK_TYPE)
    ack_type = rules.ACK_TYPES.get(frame.ack_type.lower())
    if ack_type is None:
        raise Refused(Reason.UNKNOWN_ACK_TYPE)
    if not frame.server_msg_id:
        raise Refused(Reason.MISSING_SERVER_MSG_ID)
    message = id_of(frame.server_msg_id)
    if message is None:
        raise Refused(Reason.BAD_SERVER_MSG_ID)
    return Said(ack_type, message)


class Acknowledging:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        clock: Clock,
        metrics: Metrics,
        receipts: Receipts,
        recent: Recent,
    ) -> None:
        self._db = db
        self._settings = settings
        self._clock = clock
        self._receipts = receipts
        self._recent = recent
        self._to_delivered = metrics.histogram(
            "holdfast_chat_delivered_seconds", "From a message's commit to its receiver's delivered"
        ).series()
        self._to_read = metrics.histogram(
            "holdfast_chat_read_seconds",
            "From a receiver's delivered to its read",
            bounds=(0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0),
        ).series()

    def from_memory(self, connection: Connection, ack: Said) -> bool:
        """Takes the acknowledgement if its message was written here a moment ago; False: the log must be asked."""
        place = self._recent.find(ack.message)
        if place is not None:
            if place.conversation not in connection.flows:
                return False
            self._take(connection, ack, place)
            return True
        for flow in connection.flows.values():
            written = flow.find(ack.message)
            if written is not None:
                self._take(
                    connection, ack, Place(flow.conversation, flow.kind, written.seq, written.sender, 0)
                )
                return True
        return False

    async def from_log(self, connection: Connection, ack: Said) -> None:
        """Raises `Refused`."""
        known = await self._db.glance(queries.place, ack.message, connection.user_id)
        if known is None:
            raise Refused(Reason.MESSAGE_NOT_FOUND)
        if not known.is_member:
            raise Refused(Reason.ACK_NOT_ALLOWED)
        self._take(connection, ack, known.place)

    def _take(self, connection: Connection, ack: Said, place: Place) -> None:
        now_ms = self._clock.now_ms()
        flow = connection.flow(place.conversation, place.kind)
        closed = flow.acknowledge(place.seq)
        if closed:
            connection.acknowledged(closed, self._settings.window)
        self._measure(flow, ack, place, now_ms, closed=closed > 0)
        audit = None
        if self._settings.ack_detail:
            kind = AckType.READ if ack.ack_type == "read" else AckType.DELIVERED
            audit = Audit(ack.message, connection.user_id, kind, connection.device_id, now_ms)
        self._receipts.add(
            Ack(
                ack.ack_type,
                place.kind,
                place.conversation,
                connection.user_id,
                ack.message,
                place.seq,
                place.sender,
                flow.settled(place.seq),
                connection.device_id,
                connection.id,
            ),
            audit,
        )

    def _measure(self, flow: Flow, ack: Said, place: Place, now_ms: int, *, closed: bool) -> None:
        now = asyncio.get_running_loop().time()
        if closed:
            if place.sent_ms:
                self._to_delivered.observe(max(0, now_ms - place.sent_ms) / 1000)
            flow.acked_s = now
        elif ack.ack_type == "read" and flow.acked_s:
            self._to_read.observe(now - flow.acked_s)
            flow.acked_s = 0.0
