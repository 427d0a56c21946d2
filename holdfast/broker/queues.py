"""How long a session's queue may get, and what becomes of messages above that. What was sent is never dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.message import Message
from holdfast.broker.packets import Reason
from holdfast.broker.session.session import Session
from holdfast.broker.store.rows import Trim, Trimmed

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker


class Queues:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._count = broker.settings.queue_count
        self._bytes = broker.settings.queue_bytes
        self._policy = broker.settings.queue_policy

    def make_room(self, session: Session, message: Message) -> bool:
        """Whether the message may enter the queue; what has to leave it for that leaves it now."""
        outgoing = session.outgoing
        if outgoing.count < self._count and outgoing.size + message.size <= self._bytes:
            return True
        if self._policy == "drop_oldest" and message.size <= self._bytes:
            return self._drop_oldest(session, message)
        self._broker.drop(session, "queue_full", message.topic)
        if self._policy == "disconnect" and session.peer is not None:
            session.peer.disconnect(Reason.QUOTA_EXCEEDED, "too many messages wait for this client")
        return False

    def _drop_oldest(self, session: Session, message: Message) -> bool:
        outgoing = session.outgoing
        while outgoing.count >= self._count or outgoing.size + message.size > self._bytes:
            entry = outgoing.drop_oldest()
            if entry is None:
                break
            if session.persistent:
                self._broker.journal.removed(entry)
            self._broker.drop(session, "queue_full", entry.message.topic)
        else:
            return True
        if outgoing.spilled:
            # the oldest are in the store: they go with the commit that brings this one
            self._broker.journal.overfull(session)
            return True
        # everything before it has been sent: the queue is in flight, and this is its newest
        self._broker.drop(session, "queue_full", message.topic)
        return False

    def trim(self, session: Session) -> Trim | None:
        """What to cut off a queue whose client is away."""
        outgoing = session.outgoing
        count = max(0, outgoing.count - self._count)
        size = max(0, outgoing.size - self._bytes)
        if session.ended or session.connection is not None or not (count or size):
            return None
        return Trim(session.id, outgoing.sent, count, size)

    def trimmed(self, cuts: list[Trimmed]) -> None:
        for cut in cuts:
            session = self._broker.sessions_by_number.get(cut.session_id)
            if session is None or session.ended:
                continue
            outgoing = session.outgoing
            if cut.is_rest:
                unwritten = [
                    entry.message.size
                    for entry in self._broker.journal.batch.entries
                    if entry.session is session and not entry.replay
                ]
                outgoing.count, outgoing.size = cut.count + len(unwritten), cut.size + sum(unwritten)
                continue
            outgoing.count -= cut.count
            outgoing.size -= cut.size
            if cut.count:
                self._broker.drop(session, "queue_full", None, cut.count)
