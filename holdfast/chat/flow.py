"""One conversation on its way down one connection: what was written, what is wanted, what is not acknowledged. Pure.

A push is only a wake-up. A connection writes what it reads from the log above `sent`, ascending; a message fresh
from its commit is written directly when it is exactly `sent + 1` and nothing is being read. What is not written (the
high mark, the full window, notify mode) leaves `sent` where it is. After an empty read `wanted` is compared again
before the flow rests.

| state | wake(n > sent) | a page is read | an empty read |
|---|---|---|---|
| resting | wanted = n → waiting | | |
| waiting | wanted = max | → reading | |
| reading | wanted = max | write, → waiting | wanted > sent: → waiting, else → resting |

`sent` is unknown (-1) until the first read when the conversation is newer than the connection.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from msgspec import Struct

UNKNOWN = -1
STRIDE = 3  # msgSeq, serverMsgId, sender


class Written(Struct, frozen=True):
    """A message that was written here and is not acknowledged."""

    seq: int
    message: int
    sender: int


class Flow:
    __slots__ = ("_open", "acked_s", "conversation", "kind", "reading", "sent", "waiting", "wanted")

    def __init__(self, conversation: int, kind: int, sent: int, wanted: int = 0) -> None:
        self.conversation = conversation
        self.kind = kind
        self.sent = sent
        self.wanted = wanted
        self.reading = False
        self.waiting = False
        self.acked_s = 0.0
        """When the delivered cursor moved last on this connection; 0 if it has not."""
        self._open: array[int] | None = None  # what was written and not acknowledged, packed

    # -- what is wanted

    def wake(self, seq: int) -> bool:
        """There is a message `seq`; must the log be read?"""
        if seq > self.wanted:
            self.wanted = seq
        return self.needs_a_read

    @property
    def needs_a_read(self) -> bool:
        return self.wanted > self.sent

    def is_next(self, seq: int) -> bool:
        """May a message fresh from its commit be written without a read?"""
        return self.sent == seq - 1 and not self.reading

    def rest(self, wanted: int) -> None:
        """The log had nothing more, read when `wanted` was known: what it asked for is not there, unless it rose."""
        if self.wanted == wanted:
            self.wanted = self.sent

    # -- what was written

    def begin(self, sent: int) -> None:
        """The log has said where it begins for this user."""
        if sent > self.sent:
            self.sent = sent

    def wrote(self, seq: int, message: int, sender: int) -> None:
        self.sent = seq
        if self._open is None:
            self._open = array("q")
        self._open.extend((seq, message, sender))

    def passed(self, seq: int) -> None:
        """A message that needs no writing: their own."""
        if seq > self.sent:
            self.sent = seq

    # -- what was acknowledged

    @property
    def open(self) -> int:
        """How many were written and not acknowledged."""
        return len(self._open) // STRIDE if self._open is not None else 0

    def find(self, message: int) -> Written | None:
        """The message among those that are not acknowledged."""
        for written in self._written():
            if written.message == message:
                return written
        return None

    def acknowledge(self, seq: int) -> int:
        """All up to `seq` has been stored over there; answers how many of ours that closes."""
        closed = 0
        if self._open is not None:
            seqs = self._open[::STRIDE]
            while closed < len(seqs) and seqs[closed] <= seq:
                closed += 1
            if closed == len(seqs):
                self._open = None
            else:
                del self._open[: closed * STRIDE]
        if seq > self.sent and self.sent != UNKNOWN:
            self.sent = seq  # it was fetched over HTTP
        return closed

    def settled(self, seq: int) -> int:
        """How far the delivered cursor may go when `seq` is acknowledged: what follows may be their own."""
        return self.sent if self._open is None and self.sent > seq else seq

    def _written(self) -> Iterator[Written]:
        packed = self._open
        if packed is not None:
            for at in range(0, len(packed), STRIDE):
                yield Written(*packed[at : at + STRIDE])
