"""Messages of QoS 1 and 2 on their way to the client: their order, their states, their packet ids.

| state | event | becomes |
|---|---|---|
| queued | `next`, when the window is open and what it depends on is committed | sent |
| sent, QoS 1 | `acknowledge` (PUBACK) | gone |
| sent, QoS 2 | `receive` (PUBREC) | released; gone when it reports an error |
| released | `complete` (PUBCOMP) | gone |

Any other event finds nothing and changes nothing. A persistent session's messages are all in the store; here are those
in flight, and the oldest of those that wait. When more wait than fit, or the client is away, the rest is `spilled`: it is
only in the store, and comes back by `load`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from holdfast.broker.message import Message
from holdfast.broker.session.entry import Entry, State

if TYPE_CHECKING:
    from holdfast.broker.session.session import Session

LARGEST_ID: Final = 65_535
WINDOW: Final = 1_000
"""Messages of a persistent session that wait in memory; with what is in flight, all that it costs there."""
WINDOW_BYTES: Final = 4 * 1024 * 1024


def packet_id_of(number: int) -> int:
    """A message's packet id is durable with its number, starts at 1 and counts up (2.2.1)."""
    return (number - 1) % LARGEST_ID + 1


class Outgoing:
    """`count` and `size` are of all messages here and in the store, without the replayed ones, which no cap counts."""

    __slots__ = (
        "count",
        "freed",
        "inflight",
        "last",
        "limit",
        "loaded",
        "persistent",
        "removal",
        "replayed",
        "sent",
        "size",
        "spill",
        "spilled",
        "waiting",
        "waiting_size",
    )

    def __init__(self, *, persistent: bool, last: int = 0, sent: int = 0) -> None:
        self.persistent = persistent
        self.last = last
        """The highest number given out."""
        self.sent = sent
        """Messages up to this number may have been sent."""
        self.freed = 0
        """Up to this number every message is gone, also in the store: their packet ids are free."""
        self.removal = 0
        """The batch of the latest removal from the store."""
        self.limit = LARGEST_ID
        """The client's receive maximum, or ours where that is smaller."""
        self.inflight: dict[int, Entry] = {}
        self.waiting: deque[Entry] = deque()
        self.waiting_size = 0
        self.spilled = False
        self.spill = 0
        """The batch of the latest message that is only in the store."""
        self.loaded = last
        """While spilled: messages behind this number are only in the store."""
        self.count = 0
        self.size = 0
        self.replayed = 0

    # -- in

    def add(
        self,
        session: Session,
        message: Message,
        qos: int,
        retain: bool = False,
        identifiers: tuple[int, ...] = (),
        share: str | None = None,
        replay: bool = False,
    ) -> Entry:
        """The next message of the queue. When it is spilled, it is the caller who puts it into the store."""
        self.last += 1
        entry = Entry(session, message, self.last, qos, retain, identifiers, share, replay)
        size = message.size
        if replay:
            self.replayed += 1
        else:
            self.count += 1
            self.size += size
        if self.spilled:
            return entry
        if self.persistent and (len(self.waiting) >= WINDOW or self.waiting_size >= WINDOW_BYTES):
            self.spilled = True
            self.loaded = self.last - 1
            return entry
        self.waiting.append(entry)
        self.waiting_size += size
        return entry

    def wants_more(self) -> bool:
        """Whether a part of what is spilled should be loaded now."""
        return self.spilled and len(self.waiting) < WINDOW // 2 and self.waiting_size < WINDOW_BYTES // 2

    def load(self, entries: Sequence[Entry], *, complete: bool) -> None:
        """The next messages from the store, in order; `complete` when there are no others."""
        for entry in entries:
            self.waiting.append(entry)
            self.waiting_size += entry.message.size
            self.loaded = entry.number
        if complete:
            self.spilled = False
            self.loaded = self.last

    # -- out

    def next(self, committed: int) -> Entry | None:
        """The message to be sent now, which then is in flight; None when none may be. A released one is to be
        told so (PUBREL) instead."""
        waiting = self.waiting
        if not waiting or len(self.inflight) >= self.limit:
            return None
        entry = waiting[0]
        number = entry.number
        if entry.hold > committed:
            return None
        if number - self.freed > LARGEST_ID // 2:
            if self.removal <= committed:
                self.freed = self.head() - 1
            if number - self.freed > LARGEST_ID:
                return None
        waiting.popleft()
        self.waiting_size -= entry.message.size
        self.inflight[(number - 1) % LARGEST_ID + 1] = entry
        if entry.state is State.QUEUED:
            entry.state = State.SENT
        if number > self.sent:
            self.sent = number
        return entry

    def acknowledge(self, packet_id: int) -> Entry | None:
        entry = self.inflight.get(packet_id)
        if entry is None or entry.qos != 1:
            return None
        return self._gone(packet_id, entry)

    def receive(self, packet_id: int, *, failed: bool) -> Entry | None:
        """A PUBREC: the message is now released, or was before; gone when the client refused it. None: unknown."""
        entry = self.inflight.get(packet_id)
        if entry is None:
            return self._released_before_it_was_sent_again(packet_id)
        if entry.qos != 2:
            return None
        if failed and entry.state is State.SENT:
            return self._gone(packet_id, entry)
        entry.state = State.RELEASED
        return entry

    def complete(self, packet_id: int) -> Entry | None:
        entry = self.inflight.get(packet_id)
        if entry is None or entry.state is not State.RELEASED:
            return None
        return self._gone(packet_id, entry)

    def refuse(self, entry: Entry) -> None:
        """A message that is in flight is not sent after all: too large for the client, expired, not allowed."""
        self._gone(packet_id_of(entry.number), entry)

    def drop_oldest(self) -> Entry | None:
        """Takes out the oldest message in memory that was never sent: another one, the client may know."""
        for place, entry in enumerate(self.waiting):
            if entry.state is State.QUEUED and not entry.dup and not entry.replay:
                del self.waiting[place]
                return self._left(entry)
        return None

    def take(self, share: str | None = None) -> list[Entry]:
        """Takes out what another member of a shared subscription may get instead of this client: everything of
        theirs but QoS 2 messages that were sent [MQTT-4.8.2-4, MQTT-4.8.2-5]."""
        found = [
            entry
            for entry in (*self.inflight.values(), *self.waiting)
            if entry.share is not None
            and share in (None, entry.share)
            and (entry.qos == 1 or (entry.state is State.QUEUED and not entry.dup))
        ]
        if not found:
            return found
        taken = set(found)
        for entry in found:
            packet_id = packet_id_of(entry.number)
            if self.inflight.get(packet_id) is entry:
                self._gone(packet_id, entry)
            else:
                self._left(entry)
        self.waiting = deque(entry for entry in self.waiting if entry not in taken)
        return found

    def forget(self) -> None:
        """The client is away: what it has not acknowledged is only in the store."""
        self.loaded = self.head() - 1
        self.spilled = True
        self.inflight = {}
        self.waiting = deque()
        self.waiting_size = 0

    # -- questions

    def head(self) -> int:
        """Every message below this number is gone."""
        if self.inflight:
            return next(iter(self.inflight.values())).number
        if self.waiting:
            return self.waiting[0].number
        return (self.loaded if self.spilled else self.last) + 1

    def holds(self) -> int:
        """All messages, here and in the store."""
        return self.count + self.replayed

    # -- on the way out

    def _released_before_it_was_sent_again(self, packet_id: int) -> Entry | None:
        for entry in self.waiting:
            if not entry.dup:
                return None
            if entry.qos == 2 and packet_id_of(entry.number) == packet_id:
                entry.state = State.RELEASED
                return entry
        return None

    def _gone(self, packet_id: int, entry: Entry) -> Entry:
        del self.inflight[packet_id]
        entry.state = State.GONE
        self._discount(entry)
        return entry

    def _left(self, entry: Entry) -> Entry:
        entry.state = State.GONE
        self.waiting_size -= entry.message.size
        self._discount(entry)
        return entry

    def _discount(self, entry: Entry) -> None:
        if entry.replay:
            self.replayed -= 1
        else:
            self.count -= 1
            self.size -= entry.message.size
