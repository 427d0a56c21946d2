"""What a connection leaves behind: its will, its session, messages that others of a shared subscription may get.

Everything here looks first whether the session still belongs to the connection that left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.packets import Reason
from holdfast.broker.session import Entry
from holdfast.broker.session.session import Session
from holdfast.broker.topics import is_shared, split_shared
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker
    from holdfast.broker.peer import Peer

log = get_logger("broker")


class Departures:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def left(self, peer: Peer, *, will: bool) -> None:
        """The connection is over. `will`: its client did not say goodbye."""
        session = peer.session
        if session is None or session.connection is not peer:
            return
        broker = self._broker
        session.connection = session.peer = session.loading = None
        session.replays.clear()
        session.disconnected_ms = session.since_ms = broker.clock.now_ms()
        if not will:
            broker.wills.clear(session.client_id)
        elif broker.is_closing:
            broker.wills.keep(session.client_id)
        if session.persistent and session.expiry != 0:
            self._hand_over(session)
            session.outgoing.forget()
            broker.journal.changed(session)
        else:
            self.end(session)
        broker.wills.orphaned(session.client_id, session.expiry if session.persistent else 0)
        broker.turns.commit_later()

    def taken_over(self, peer: Peer) -> None:
        """Another connection has the same client id [MQTT-3.1.4-3]."""
        peer.disconnect(Reason.SESSION_TAKEN_OVER)

    def end(self, session: Session) -> None:
        """The session is over: its subscriptions, its queue, its place in the store. Its will is due at once."""
        if session.ended:
            return
        broker = self._broker
        session.ended = True
        for name in list(session.subscriptions):
            broker.subscribing.leave(session, name)
        if broker.sessions_by_id.get(session.client_id) is session:
            del broker.sessions_by_id[session.client_id]
        for entry in session.outgoing.take():
            self._give(session, entry)
        if session.persistent:
            broker.sessions_by_number.pop(session.id, None)
            broker.limits.ended(session.name)
            broker.journal.ended(session)
            if session.outgoing.holds():
                broker.leftovers.add(session.id, session.outgoing.sent)
        broker.wills.session_ended(session.client_id)
        broker.turns.commit_later()

    def expire(self, session: Session) -> None:
        log.info("session_expired", client=session.client_id)
        self._broker.counters.expired_sessions += 1
        self.end(session)

    # -- shared subscriptions

    def _hand_over(self, session: Session) -> None:
        """The client is away: what it has not acknowledged goes to another member that is here [MQTT-4.8.2-6]."""
        for name in session.subscriptions:
            if not is_shared(name):
                continue
            shared = split_shared(name)
            group = self._broker.shared.group(shared) if shared is not None else None
            if group is not None and any(member.peer is not None for member in group.members):
                for entry in session.outgoing.take(name):
                    self._give(session, entry)

    def _give(self, session: Session, entry: Entry) -> None:
        """The session's own queue has lost it already; another member gets it, if there is one."""
        broker = self._broker
        assert entry.share is not None
        broker.share_again(entry.share, entry.message)
        if session.persistent:
            broker.journal.removed(entry)
