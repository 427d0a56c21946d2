"""Retained messages for a new subscription (3.8.4): sent as the connection takes them, or put into the queue.

A persistent session's messages of QoS 1 and 2 go into its queue before SUBACK leaves, so that a crash in the middle
loses none of them. Everything else is a walk over the retained topics that goes on when there is room.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from holdfast.broker.message import Message
from holdfast.broker.retained import OURS
from holdfast.broker.session.session import Session
from holdfast.broker.topics import Grant

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker
    from holdfast.broker.peer import Peer

RETAINED: Final = 0x31
"""The first byte of a PUBLISH at QoS 0 with RETAIN."""

TURN: Final = 500
"""Messages that one session gets in a turn of the loop, so that others have theirs."""


class Replay:
    """One subscription's walk. `straight_only`: what is kept in the queue is there already."""

    __slots__ = ("filter", "grant", "straight_only", "walk")

    def __init__(self, name: str, grant: Grant, walk: Iterator[Message], *, straight_only: bool) -> None:
        self.filter = name
        self.grant = grant
        self.walk = walk
        self.straight_only = straight_only


class Replays:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def turn(self, session: Session, peer: Peer) -> None:
        """Goes on with a session's walks, as far as its connection and its window take it. What was written brings
        it back (`Peer.flush`, `resume_writing`), and so do acknowledgements."""
        high = self._broker.settings.high_water
        left = TURN
        while session.replays and peer.backlog < high:
            replay = session.replays[0]
            if not replay.straight_only and len(session.outgoing.waiting) > TURN:
                return
            if not left:
                self._broker.turns.pump_later(session)
                return
            if peer.is_plain and not replay.grant.qos and not replay.grant.identifier:
                took = self._many(session, peer, replay, left, high - peer.backlog)
            else:
                took = self._next(session, peer, replay)
            if not took:
                session.replays.pop(0)
            left -= took

    def _many(self, session: Session, peer: Peer, replay: Replay, most: int, room: int) -> int:
        """QoS 0 to a connection that takes every packet as it is: in one piece. 0 when there are no more."""
        broker, version = self._broker, peer.version
        frames: list[bytes] = []
        payloads = took = 0
        for message in replay.walk:
            took += 1
            room -= message.size
            if broker.may_receive(session, message.topic):
                if message.expires_ms is None:
                    frames.append(message.once(version, RETAINED))
                    payloads += len(message.payload)
                else:
                    self._send(peer, frames)
                    broker.delivery.straight(peer, session, message, True, ())
            if took == most or room <= 0:
                break
        broker.counters.publish_sent += len(frames)
        broker.counters.publish_bytes_sent += payloads
        self._send(peer, frames)
        return took

    def _send(self, peer: Peer, frames: list[bytes]) -> None:
        if frames:
            self._broker.counters.packets_sent += len(frames) - 1
            peer.send(b"".join(frames))
            frames.clear()

    def _next(self, session: Session, peer: Peer, replay: Replay) -> int:
        message = next(replay.walk, None)
        if message is None:
            return 0
        self._one(session, peer, replay, message)
        return 1

    def _one(self, session: Session, peer: Peer, replay: Replay, message: Message) -> None:
        grant = replay.grant
        qos = min(grant.qos, message.qos)
        identifiers = (grant.identifier,) if grant.identifier else ()
        if qos:
            if not replay.straight_only:
                session.outgoing.add(session, message, qos, True, identifiers, replay=True)
                self._broker.turns.pump_later(session)
        elif self._broker.may_receive(session, message.topic):
            self._broker.delivery.straight(peer, session, message, True, identifiers)

    def keep(self, session: Session, walk: Iterator[Message], grant: Grant, most: int) -> bool:
        """Puts the messages of QoS 1 and 2 among the next `most` into a persistent session's queue; True when those
        were the last."""
        identifiers = (grant.identifier,) if grant.identifier else ()
        for message in islice(walk, most):
            most -= 1
            qos = min(grant.qos, message.qos)
            if qos:
                # what the broker says about itself is in no store, and may be enqueued often
                kept = message.again() if message.topic.startswith(OURS) else message
                entry = session.outgoing.add(session, kept, qos, True, identifiers, replay=True)
                self._broker.journal.enqueued(entry)
        return most > 0
