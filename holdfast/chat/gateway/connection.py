"""One client: its state, its write buffer, its place in every conversation. Knows no database.

Writing: a message goes out only while the reader keeps up (the transport's own marks), a critical frame always or
the connection closes; other answers are small, bounded by how much the client may ask, and always go out.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

from picows import WSCloseCode, WSMsgType, WSTransport

from holdfast.accounts.sessions import Session
from holdfast.chat.flow import UNKNOWN, Flow
from holdfast.chat.frames import Frame, encode
from holdfast.chat.model import Kind, Message, Standing
from holdfast.chat.rate import Bucket
from holdfast.chat.reasons import EFFECTS, Effect, Reason, Refusal, Strikes
from holdfast.chat.states import Life, State
from holdfast.log import get_logger

GOING_AWAY, POLICY, SLOW = WSCloseCode.GOING_AWAY, WSCloseCode.POLICY_VIOLATION, WSCloseCode.TRY_AGAIN_LATER
TEXT = WSMsgType.TEXT
LINGER_SECONDS = 0.5  # for a close frame to leave behind what still waits

log = get_logger("chat")
_numbers = count(1)


def header(size: int) -> bytes:
    """Of a text frame from a server: final, not masked (RFC 6455, 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2)
    return b"\x81\x7f" + size.to_bytes(8)


def joined(frames: Sequence[bytes]) -> bytes:
    """Texts as they travel, one behind the other."""
    parts: list[bytes] = []
    for data in frames:
        parts += (header(len(data)), data)
    return b"".join(parts)


class Connection:
    __slots__ = (
        "_aborting",
        "_baseline_ids",
        "_baseline_seqs",
        "_close_after",
        "_drop",
        "_most",
        "_on_room",
        "_unwritable_timer",
        "address",
        "auth_timer",
        "bucket",
        "credit",
        "device_id",
        "early",
        "flows",
        "generation",
        "heard",
        "id",
        "in_line",
        "inbox",
        "is_connected",
        "left_in_log",
        "life",
        "opened",
        "parked",
        "patience",
        "pending",
        "session",
        "strikes",
        "transport",
        "unacknowledged",
        "unwritable",
        "user_id",
        "waiting",
        "window",
        "working",
        "wrote",
    )

    def __init__(
        self,
        transport: WSTransport,
        address: str,
        bucket: Bucket,
        now: float,
        window: int,
        *,
        drop: bool,
        most: int,
        close_after: float,
        on_room: Callable[[Connection], None],
    ) -> None:
        self.id = next(_numbers)
        self.transport = transport
        self.address = address
        self.life = Life()
        self.is_connected = True
        self.user_id = 0
        self.session: Session | None = None
        self.device_id = ""
        self.generation = 0
        self.opened = 0.0
        # what comes in
        self.bucket = bucket
        self.credit = 0
        """Acknowledgements that we asked for by writing messages: these are not counted against the rate."""
        self.heard = self.wrote = now
        self.strikes: Strikes | None = None
        self.inbox: deque[Frame] | None = None
        self.pending = 0
        self.working: asyncio.Task[None] | None = None
        self.auth_timer: asyncio.TimerHandle | None = None
        # what goes out
        self.unwritable = False
        self.left_in_log = 0
        self._drop = drop
        self._most = most
        self._close_after = close_after
        self._on_room = on_room
        self._unwritable_timer: asyncio.TimerHandle | None = None
        self._aborting: asyncio.TimerHandle | None = None
        self.flows: dict[int, Flow] = {}
        self._baseline_ids: array[int] = array("q")
        self._baseline_seqs: array[int] = array("q")
        self.early: dict[int, tuple[int, int]] | None = {}
        """Conversation → (kind, msgSeq) of pushes that came before it was read where this user stands."""
        self.unacknowledged = 0
        self.window = window
        # its place in the resend's line
        self.waiting: deque[Flow] | None = None
        self.in_line = False
        self.parked = False
        self.patience: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self.life.state is State.OPEN

    # -- writing

    @property
    def takes_messages(self) -> bool:
        return self.is_open and not (self.unwritable and self._drop)

    @property
    def has_room(self) -> bool:
        """May a message be written? The window is bounded; `Resend` sees to it that it is not the end of it."""
        return self.takes_messages and self.unacknowledged < self.window

    def has_room_for(self, count: int) -> bool:
        return self.takes_messages and self.unacknowledged + count <= self.window

    def send(self, data: bytes) -> None:
        """An answer. Who asks and asks and does not read what comes is closed before it costs much more."""
        if not self.is_connected or self.life.state is State.CLOSING:
            return
        if self.unwritable and self.transport.underlying_transport.get_write_buffer_size() > self._most:
            self.abort("answers_not_read")
        else:
            self._write(data)

    def send_all(self, frames: Sequence[bytes]) -> None:
        """Answers, in one write."""
        if len(frames) == 1 or self.unwritable:
            for data in frames:
                self.send(data)
        elif frames and self.is_connected and self.life.state is not State.CLOSING:
            self._write_joined(frames)

    def send_if_it_keeps_up(self, data: bytes) -> None:
        """What can do without arriving."""
        if not self.unwritable:
            self.send(data)

    def send_critical(self, data: bytes) -> None:
        """What must arrive: if it cannot be written now, the connection is of no more use."""
        if self.unwritable:
            self.abort("critical_frame_unwritable")
        else:
            self.send(data)

    def write_message(self, flow: Flow, data: bytes, seq: int, message: int, sender: int) -> None:
        """The caller has looked at `has_room`."""
        flow.wrote(seq, message, sender)
        self.unacknowledged += 1
        if self.credit < 2 * self.window:
            self.credit += 2  # one delivered, one read
        self._write(data)

    def write_messages(self, flow: Flow, messages: Sequence[Message], frames: Sequence[bytes]) -> None:
        """Several small ones in a row, in one write; the caller has looked at `has_room_for`."""
        self.write_framed(flow, messages, joined(frames))

    def write_framed(self, flow: Flow, messages: Sequence[Message], frames: bytes) -> None:
        """The same, with their frames as `joined` makes them, perhaps for many connections at once."""
        for message in messages:
            flow.wrote(message.seq, message.id, message.sender)
        self.unacknowledged += len(messages)
        self.credit = min(self.credit + 2 * len(messages), 2 * self.window)
        self._write_bytes(frames)

    def _write_joined(self, frames: Sequence[bytes]) -> None:
        self._write_bytes(joined(frames))

    def _write_bytes(self, frames: bytes) -> None:
        self.transport.underlying_transport.write(frames)
        self.wrote = self.now()

    def _write(self, data: bytes) -> None:
        self.transport.send(TEXT, data)
        self.wrote = self.now()

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    def error(
        self, reason: Reason, client_msg_id: str | None = None, server_msg_id: str | None = None
    ) -> None:
        """Says what is wrong, and closes where the table says so."""
        if self.life.state is State.CLOSING:
            return
        self.send_critical(
            encode(
                Frame(
                    type="ERROR",
                    reason=reason.value,
                    client_msg_id=client_msg_id,
                    server_msg_id=server_msg_id,
                )
            )
        )
        effect = EFFECTS[reason]
        if effect is Effect.STRIKES:
            self.strikes = self.strikes or Strikes()
            if self.strikes.strike(asyncio.get_running_loop().time()):
                effect = Effect.CLOSES
        if effect is Effect.CLOSES:
            self.close(POLICY)

    def refuse(self, refusal: Refusal) -> None:
        self.send_critical(encode(Frame(type="AUTH_FAIL", reason=refusal.value)))
        self.close(POLICY)

    # -- closing

    def close(self, code: WSCloseCode) -> None:
        """Sends what waits and a close frame, then ends the connection; again is harmless."""
        if self.life.state is State.CLOSING:
            return
        self.life.closing()
        if not self.is_connected:
            return
        self.transport.send_close(code)
        if self.unwritable:
            loop = asyncio.get_running_loop()
            self._aborting = loop.call_later(LINGER_SECONDS, self.transport.disconnect, False)
        else:
            self.transport.disconnect()

    def abort(self, why: str) -> None:
        """Ends the connection now, whatever waits."""
        log.info("connection_aborted", connId=self.id, userId=self.user_id, why=why)
        self.life.closing()
        if self.is_connected:
            self.transport.disconnect(graceful=False)

    def lost(self) -> None:
        """The transport is gone."""
        self.is_connected = False
        self.life.closing()
        for timer in (self.auth_timer, self._unwritable_timer, self._aborting, self.patience):
            if timer is not None:
                timer.cancel()
        self.auth_timer = self._unwritable_timer = self._aborting = self.patience = None
        self.inbox = None
        self.waiting = None

    # -- the transport's marks

    def pause_writing(self) -> None:
        self.unwritable = True
        self.left_in_log = 0
        if self._unwritable_timer is None and self.is_connected:
            loop = asyncio.get_running_loop()
            self._unwritable_timer = loop.call_later(self._close_after, self._too_slow)

    def resume_writing(self) -> None:
        self.unwritable = False
        if self._unwritable_timer is not None:
            self._unwritable_timer.cancel()
            self._unwritable_timer = None
        self._on_room(self)

    def _too_slow(self) -> None:
        self._unwritable_timer = None
        log.info("reader_too_slow", connId=self.id, userId=self.user_id, leftInLog=self.left_in_log)
        self.close(SLOW)

    # -- conversations

    def stand(self, standings: Sequence[Standing]) -> None:
        """Where its user stands: what is not behind needs no flow before something happens there."""
        level = [standing for standing in standings if standing.head <= standing.delivered]
        self._baseline_ids = array("q", [standing.conversation for standing in level])
        self._baseline_seqs = array("q", [standing.head for standing in level])

    def flow(self, conversation: int, kind: int) -> Flow:
        """The flow of a conversation; one that is newer than the connection begins at 0, or where its log says."""
        found = self.flows.get(conversation)
        if found is None:
            sent = self._baseline(conversation)
            if sent is None:
                sent = 0 if kind == Kind.SINGLE else UNKNOWN
            found = self.flows[conversation] = Flow(conversation, kind, sent)
        return found

    def forget(self, conversation: int) -> None:
        """Its user is no member any more."""
        flow = self.flows.pop(conversation, None)
        if flow is not None:
            self.unacknowledged -= flow.open
        at = bisect_left(self._baseline_ids, conversation)
        if at < len(self._baseline_ids) and self._baseline_ids[at] == conversation:
            del self._baseline_ids[at]
            del self._baseline_seqs[at]

    def acknowledged(self, closed: int, usual_window: int) -> None:
        """So many of its messages were acknowledged."""
        self.unacknowledged -= closed
        if self.unacknowledged < usual_window:
            self.window = usual_window
        if closed and self.parked:
            self._on_room(self)

    def _baseline(self, conversation: int) -> int | None:
        at = bisect_left(self._baseline_ids, conversation)
        if at < len(self._baseline_ids) and self._baseline_ids[at] == conversation:
            return self._baseline_seqs[at]
        return None
