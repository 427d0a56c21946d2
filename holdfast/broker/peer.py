"""One connection: bytes in from a door, packets to their handlers, bytes out in one write per turn of the loop.

| state | takes | becomes |
|---|---|---|
| new | CONNECT | admitting |
| admitting | AUTH; what else arrives waits, and no more is read | open, closed |
| open | every packet | closed |
| closed | nothing | |

What a packet means is decided by its handler (`handlers`); what the connection leaves behind, by `departures`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from holdfast.broker.hooks import Identity
from holdfast.broker.packets import (
    V5,
    V311,
    Auth,
    Connack,
    Connect,
    Decoder,
    Disconnect,
    Packet,
    ProtocolError,
    Publish,
    Reason,
    encode,
    encode_within,
)
from holdfast.broker.transport import Transport
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker
    from holdfast.broker.limits import Meter
    from holdfast.broker.session.session import Session

log = get_logger("broker")

SECONDS_BETWEEN_LINES = 10.0
LEVEL_NOT_SPOKEN = "MQTT-3.1.2-2"
SAID_TO_V3 = frozenset(
    {
        Reason.UNSUPPORTED_PROTOCOL_VERSION,
        Reason.CLIENT_ID_NOT_VALID,
        Reason.BAD_USER_NAME_OR_PASSWORD,
        Reason.BAD_AUTHENTICATION_METHOD,
        Reason.NOT_AUTHORIZED,
        Reason.BANNED,
        Reason.SERVER_UNAVAILABLE,
        Reason.SERVER_BUSY,
        Reason.QUOTA_EXCEEDED,
        Reason.CONNECTION_RATE_EXCEEDED,
        Reason.UNSPECIFIED,
    }
)
"""Refusals that 3.1.1 has a return code for; the last five are its "server unavailable"."""


class Stage(IntEnum):
    NEW = 0
    ADMITTING = 1
    OPEN = 2
    CLOSED = 3


class Hold:
    """Why nothing is read from a connection at the moment: bits, as plain numbers because they are looked at often."""

    THINKING = 1
    """A decision about its last packet has to be looked up."""
    RATE = 2
    UNACKNOWLEDGED = 4
    """Many of its messages are not safe yet."""
    DISK = 8
    LISTENERS = 16


class Waiting:
    """An acknowledgement in its place among the others: they leave in the order of the messages [MQTT-4.6.0-2]."""

    __slots__ = ("frame", "packet_id", "peer", "ready")

    def __init__(self, peer: Peer, frame: bytes, packet_id: int, *, ready: bool) -> None:
        self.peer = peer
        self.frame = frame
        self.packet_id = packet_id
        self.ready = ready

    def settle(self) -> None:
        self.ready = True
        self.peer.release_acknowledgements()

    def fail(self) -> None:
        self.peer.store_failed()


class Peer:
    """A door calls `receive_data`, `pause_writing`, `resume_writing`, `connection_lost`, in the loop's thread; none of
    them raises."""

    __slots__ = (
        "_holds",
        "_out",
        "acknowledgements",
        "aliases",
        "answer",
        "backlog",
        "broker",
        "connect",
        "decoder",
        "dirty",
        "held",
        "identity",
        "is_plain",
        "is_reauthenticating",
        "keep_alive",
        "last_heard",
        "meter",
        "most_aliases",
        "refusal",
        "reported",
        "session",
        "stage",
        "their_aliases",
        "transport",
        "unwritable_since",
        "was_heard",
    )

    def __init__(self, broker: Broker, transport: Transport, refusal: Reason | None = None) -> None:
        self.broker = broker
        self.transport = transport
        self.refusal = refusal
        """Why its CONNECT will be refused, whatever it says."""
        self.decoder = Decoder(max_packet_size=broker.settings.max_packet_size)
        self.stage = Stage.NEW
        self.session: Session | None = None
        self.identity: Identity | None = None
        self.connect: Connect | None = None
        self.keep_alive = 0.0
        """Seconds of silence after which it is closed, 0 for none."""
        self.last_heard = broker.clock.monotonic()
        self.was_heard = False
        self.unwritable_since: float | None = None
        self.backlog = 0
        """Bytes that wait to be sent: here and in the transport."""
        self.dirty = False
        self._out: list[bytes] = []
        self._holds = 0
        self.held: list[Packet] = []
        """Packets that arrived while a decision was looked up."""
        self.acknowledgements: deque[Waiting] | None = None
        self.answer: asyncio.Future[Auth] | None = None
        """The next AUTH, when somebody waits for it."""
        self.is_reauthenticating = False
        self.their_aliases: dict[int, str] | None = None
        self.aliases: dict[str, int] | None = None
        self.most_aliases = 0
        self.is_plain = True
        """It takes every PUBLISH as all others of its version do: no aliases, no maximum size."""
        self.meter: Meter | None = None
        self.reported = -SECONDS_BETWEEN_LINES

    @property
    def version(self) -> int:
        return self.decoder.version or V5

    @property
    def is_open(self) -> bool:
        return self.stage is Stage.OPEN

    @property
    def is_closed(self) -> bool:
        return self.stage is Stage.CLOSED

    # -- in

    def receive_data(self, data: bytes) -> None:
        """Whatever arrived, in pieces of any size. After `close` or `abort` of the transport it does nothing."""
        if self.stage is Stage.CLOSED:
            return
        self.was_heard = True
        counters = self.broker.counters
        counters.bytes_received += len(data)
        error: ProtocolError | None = None
        try:
            packets = self.decoder.receive_data(data)
        except ProtocolError as found:
            packets, error = found.packets, found
        counters.packets_received += len(packets)
        if self.meter is not None:
            self.meter.read(self, data, packets)
        self._take(packets)
        if error is not None and not self.is_closed:
            self._refuse_bytes(error)

    def _take(self, packets: list[Packet]) -> None:
        if self._holds & Hold.THINKING:
            self.held += packets
        else:
            self.guarded(lambda: self._handle(packets))

    def guarded(self, handle: Callable[[], None]) -> None:
        """A mistake in one connection, ours or the client's, is no reason to end the others."""
        try:
            handle()
        except ProtocolError as error:
            self._refuse_bytes(error)
        except Exception:
            log.exception("packet_failed", client=self.session.client_id if self.session else None)
            self.disconnect(Reason.UNSPECIFIED)

    def _handle(self, packets: list[Packet]) -> None:
        handle = self.broker.handlers.handle
        at, end = 0, len(packets)
        while at < end and not self.is_closed:
            packet = packets[at]
            if self.stage is Stage.ADMITTING:
                self.broker.handlers.while_admitting(self, packet)
                at += 1
            elif type(packet) is Publish:
                at = self.broker.publishing.take(self, packets, at)
            else:
                handle(self, packet)
                at += 1
            if self._holds & Hold.THINKING:
                self.held = packets[at:] + self.held
                return

    def think(self) -> None:
        """What follows waits until `go_on`."""
        self.hold(Hold.THINKING)

    def go_on(self) -> None:
        packets, self.held = self.held, []
        self.unhold(Hold.THINKING)
        if packets and self.stage is not Stage.CLOSED:
            self._take(packets)

    def hold(self, why: int) -> None:
        if not self._holds and self.stage is not Stage.CLOSED:
            self.transport.pause_reading()
        self._holds |= why

    def unhold(self, why: int) -> None:
        if not self._holds & why:
            return
        self._holds &= ~why
        if not self._holds and self.stage is not Stage.CLOSED:
            self.was_heard = True  # its silence was ours
            self.transport.resume_reading()

    def hold_for_rate(self) -> None:
        self.hold(Hold.RATE)

    def unhold_for_rate(self) -> None:
        self.unhold(Hold.RATE)

    def hold_for_disk(self) -> None:
        self.hold(Hold.DISK)

    def unhold_for_disk(self) -> None:
        self.unhold(Hold.DISK)

    def hold_for_listeners(self) -> None:
        self.hold(Hold.LISTENERS)

    def unhold_for_listeners(self) -> None:
        self.unhold(Hold.LISTENERS)

    @property
    def is_held(self) -> bool:
        return bool(self._holds)

    def is_worth_a_line(self) -> bool:
        """Whether the log hears of another mistake of this client: a flood of them is one line in ten seconds."""
        now = self.broker.clock.monotonic()
        if now - self.reported < SECONDS_BETWEEN_LINES:
            return False
        self.reported = now
        return True

    # -- out

    def send(self, data: bytes) -> None:
        """Leaves at the end of this turn of the loop."""
        if self.stage is Stage.CLOSED:
            return
        self._out.append(data)
        self.backlog += len(data)
        if not self.dirty:
            self.dirty = True
            self.broker.turns.write_later(self)

    def flush(self) -> None:
        self.dirty = False
        out = self._out
        if not out or self.stage is Stage.CLOSED:
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        counters = self.broker.counters
        counters.bytes_sent += len(data)
        counters.packets_sent += len(out)
        out.clear()
        self.transport.write(data)
        self.backlog = self.transport.unsent()
        session = self.session
        if session is not None and session.replays and self.backlog < self.broker.settings.high_water:
            self.broker.turns.pump_later(session)

    def acknowledge(self, frame: bytes, packet_id: int, *, ready: bool = True) -> Waiting | None:
        """Puts an acknowledgement of a PUBLISH behind those before it; answers the place it waits in, if it does."""
        waiting = self.acknowledgements
        if ready and not waiting:
            self.send(frame)
            return None
        if waiting is None:
            waiting = self.acknowledgements = deque()
        place = Waiting(self, frame, packet_id, ready=ready)
        waiting.append(place)
        if len(waiting) > self.broker.publishing.MOST_UNACKNOWLEDGED:
            self.hold(Hold.UNACKNOWLEDGED)
        return place

    def release_acknowledgements(self) -> None:
        waiting = self.acknowledgements
        while waiting and waiting[0].ready:
            self.send(waiting.popleft().frame)
        if self._holds and (not waiting or len(waiting) < self.broker.publishing.MOST_UNACKNOWLEDGED // 2):
            self.unhold(Hold.UNACKNOWLEDGED)

    def pause_writing(self) -> None:
        """The transport's buffer is above its mark (`broker.high_water`)."""
        if self.unwritable_since is None:
            self.unwritable_since = self.broker.clock.monotonic()

    def resume_writing(self) -> None:
        self.unwritable_since = None
        self.backlog = self.transport.unsent()
        if self.session is not None and self.session.peer is self:
            self.broker.turns.pump_later(self.session)

    # -- the end

    def refuse(self, reason: Reason, text: str | None = None) -> None:
        """Answers a CONNECT with no. A 3.1.1 client that cannot be told in its words is told nothing
        [MQTT-3.2.2-6 (3.1.1)]."""
        if self.stage is Stage.CLOSED:
            return
        self.broker.counters.refusals[reason.name.lower()] += 1
        log.info("client_refused", address=self.transport.address, reason=reason.name.lower(), why=text)
        if self.version == V5 or reason in SAID_TO_V3:
            most = self.connect.maximum_packet_size if self.connect is not None else None
            said = encode_within(Connack(reason=reason, reason_string=text), self.version, most)
            if said is not None:
                self.send(said)
        self._close(will=False)

    def refuse_level(self) -> None:
        """A level that is not spoken here is answered in words of 3.1.1: they are the only ones that are asked for
        [MQTT-3.1.2-2 (3.1.1)]; 5.0 leaves it open."""
        self.broker.counters.refusals["unsupported_protocol_version"] += 1
        self.send(encode(Connack(reason=Reason.UNSUPPORTED_PROTOCOL_VERSION), V311))
        self._close(will=False)

    def disconnect(self, reason: Reason, text: str | None = None, *, will: bool = True) -> None:
        """Ends the connection from our side, and says why where the version can (3.14)."""
        if self.stage is Stage.CLOSED:
            return
        if self.stage is Stage.OPEN:
            self._log_end(reason.name.lower(), text)
            if self.version == V5:
                most = self.connect.maximum_packet_size if self.connect is not None else None
                said = encode_within(Disconnect(reason=reason, reason_string=text), V5, most)
                if said is not None:
                    self.send(said)
        self._close(will=will)

    def left(self, *, will: bool) -> None:
        """The client said goodbye."""
        self._log_end("goodbye with will" if will else "goodbye")
        self._close(will=will)

    def abandon(self) -> None:
        """Closes at once, with nothing said: there is nobody, or nobody who reads."""
        if self.stage is not Stage.CLOSED:
            self._end(will=True)
        self.transport.abort()

    def store_failed(self) -> None:
        """Something that this client waits for may not be on disk: it has to send it again."""
        if self.stage is Stage.ADMITTING:
            self.refuse(Reason.SERVER_UNAVAILABLE)
        else:
            self.disconnect(Reason.SERVER_BUSY, "the message could not be stored; send it again")

    def connection_lost(self) -> None:
        """Once, also after our own `close` or `abort`."""
        if self.stage is Stage.OPEN:
            self._log_end("connection lost")
        if self.stage is not Stage.CLOSED:
            self._end(will=True)
        self.broker.gone(self)

    def _log_end(self, reason: str, why: str | None = None) -> None:
        client = self.session.client_id if self.session is not None else None
        log.info("client_disconnected", client=client, reason=reason, why=why)

    def _close(self, *, will: bool) -> None:
        self.flush()
        self._end(will=will)
        self.transport.close()

    def _end(self, *, will: bool) -> None:
        was_open = self.stage is Stage.OPEN
        self.stage = Stage.CLOSED
        self._out.clear()
        self.held.clear()
        if self.answer is not None and not self.answer.done():
            self.answer.cancel()
        self.broker.departures.left(self, will=will and was_open)

    def _refuse_bytes(self, error: ProtocolError) -> None:
        """In 5.0 with the reason; a wrong CONNECT of 3.1.1 gets no answer [MQTT-3.1.4-1 (3.1.1)], nor does what is no
        MQTT at all."""
        log.info("protocol_error", address=self.transport.address, clause=error.clause, why=error.message)
        if self.stage is Stage.NEW and self.decoder.version is None:
            if error.clause == LEVEL_NOT_SPOKEN:
                self.refuse_level()
            else:
                self._close(will=False)
        elif self.stage is Stage.ADMITTING or self.stage is Stage.NEW:
            self.refuse(error.reason, error.message)
        else:
            self.disconnect(error.reason, error.message)
