"""From a session's queue to its connection: what may be sent now, in which bytes, and the next part of the queue.

QoS 0 comes straight from the router (`straight`); everything else waits its turn in the queue and is sent by `pump`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.broker.message import Message
from holdfast.broker.packets import Pubrel, encode
from holdfast.broker.packets.outgoing import OutgoingMessage
from holdfast.broker.session import Entry, State, packet_id_of
from holdfast.broker.session.outgoing import WINDOW, WINDOW_BYTES
from holdfast.broker.session.session import Session
from holdfast.broker.store import reads
from holdfast.broker.store.rows import StoredMessage, split, unpacked
from holdfast.errors import HoldfastError
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker
    from holdfast.broker.peer import Peer

RETRY_SECONDS: Final = 0.5

log = get_logger("broker")


class Delivery:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._high = broker.settings.high_water
        self._tasks: set[asyncio.Task[None]] = set()

    # -- from the queue

    def pump(self, session: Session) -> None:
        """Sends what the client's window, its connection and the disk allow."""
        peer = session.peer
        if peer is None or session.resting:
            return
        outgoing = session.outgoing
        committed = self._broker.journal.committed
        high = self._high
        while peer.backlog < high:
            entry = outgoing.next(committed)
            if entry is None:
                break
            self._send(peer, session, entry)
        if outgoing.spilled and session.loading is not peer and outgoing.wants_more():
            self._load(session, peer)
        if session.replays and peer.backlog < high:
            self._broker.replays.turn(session, peer)

    def _send(self, peer: Peer, session: Session, entry: Entry) -> None:
        if entry.state is State.RELEASED:
            peer.send(encode(Pubrel(packet_id_of(entry.number)), peer.version))
            return
        message = entry.message
        broker = self._broker
        dup = entry.dup
        if entry.checked != broker.turns.number and not broker.may_receive(session, message.topic):
            self._refuse(session, entry, "not_allowed")
            return
        outgoing: OutgoingMessage | None = message
        if message.expires_ms is not None:
            outgoing = self._aged(message, even_if_expired=dup)
            if outgoing is None:
                broker.counters.expired_messages += 1
                self._refuse(session, entry, None)
                return
        assert outgoing is not None
        version = peer.version
        packet_id = packet_id_of(entry.number).to_bytes(2, "big")
        if peer.is_plain and not (dup or entry.retain or entry.identifiers):
            data = outgoing.plain(version, entry.qos, packet_id)
        elif peer.is_plain and not (dup or entry.identifiers):
            data = outgoing.once(version, 0x31 | entry.qos << 1, packet_id)  # a replay of what is retained
        elif peer.is_plain:
            head, tail = outgoing.parts(
                version, entry.qos, entry.retain, dup=dup, subscription_ids=entry.identifiers
            )
            data = b"".join((head, packet_id, tail))
        else:
            fitting = self._fitting(
                peer, outgoing, entry.qos, entry.retain, dup, entry.identifiers, packet_id
            )
            if fitting is None:
                self._refuse(session, entry, "too_large")
                return
            data = fitting
        broker.counters.publish_sent += 1
        broker.counters.publish_bytes_sent += len(message.payload)
        peer.send(data)

    def _refuse(self, session: Session, entry: Entry, why: str | None) -> None:
        """A message that this client does not get counts as delivered to it [MQTT-3.1.2-25]."""
        session.outgoing.refuse(entry)
        if session.persistent:
            self._broker.journal.removed(entry)
        if why is not None:
            self._broker.drop(session, why, entry.message.topic)

    def _aged(self, message: Message, *, even_if_expired: bool) -> OutgoingMessage | None:
        """The message with what is left of its life in it [MQTT-3.3.2-6], None when it has expired."""
        properties = message.properties
        assert message.expires_ms is not None
        left = message.expires_ms - self._broker.clock.now_ms()
        if left <= 0 and not even_if_expired:
            return None
        seconds = max(0, -(-left // 1000))
        if properties is None or properties.message_expiry in (None, seconds):
            return message
        return OutgoingMessage(
            message.topic, message.payload, msgspec.structs.replace(properties, message_expiry=seconds)
        )

    # -- one packet

    def straight(
        self,
        peer: Peer,
        session: Session,
        message: Message,
        retain: bool,
        identifiers: tuple[int, ...],
    ) -> bool:
        """A QoS 0 message to a connected client; False when it is dropped."""
        broker = self._broker
        if peer.backlog > self._high:
            broker.drop(session, "slow", message.topic)
            return False
        outgoing: OutgoingMessage | None = message
        if message.expires_ms is not None:
            outgoing = self._aged(message, even_if_expired=False)
            if outgoing is None:
                broker.counters.expired_messages += 1
                return False
        assert outgoing is not None
        data = self._fitting(peer, outgoing, 0, retain, False, identifiers, b"")
        if data is None:
            broker.drop(session, "too_large", message.topic)
            return False
        broker.counters.publish_sent += 1
        broker.counters.publish_bytes_sent += len(message.payload)
        peer.send(data)
        return True

    def _fitting(
        self,
        peer: Peer,
        message: OutgoingMessage,
        qos: int,
        retain: bool,
        dup: bool,
        identifiers: tuple[int, ...],
        packet_id: bytes,
    ) -> bytes | None:
        """The bytes for a client with topic aliases or a maximum packet size; None when they are too many."""
        alias, is_known = 0, False
        aliases = peer.aliases
        if peer.most_aliases:
            if aliases is None:
                aliases = peer.aliases = {}
            alias = aliases.get(message.topic, 0)
            is_known = alias != 0
            if not alias and len(aliases) < peer.most_aliases:
                alias = len(aliases) + 1
        head, tail = message.parts(
            peer.version,
            qos,
            retain,
            dup=dup,
            topic_alias=alias,
            with_topic=not is_known,
            subscription_ids=identifiers,
        )
        data = b"".join((head, packet_id, tail))
        most = peer.connect.maximum_packet_size if peer.connect is not None else None
        if most is not None and len(data) > most:
            return None
        if alias and not is_known and aliases is not None:
            aliases[message.topic] = alias
        return data

    # -- from the store

    def _load(self, session: Session, peer: Peer) -> None:
        session.loading = peer
        task = asyncio.get_running_loop().create_task(self._load_part(session, peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load_part(self, session: Session, peer: Peer) -> None:
        """The next part of a queue that is in the store. A takeover meanwhile makes it void."""
        outgoing, journal = session.outgoing, self._broker.journal
        committed = journal.committed
        try:
            part, is_last = await self._broker.db.read(
                reads.queue_part, session.id, outgoing.loaded, WINDOW, WINDOW_BYTES
            )
        except HoldfastError as error:
            log.warning("queue_not_read", client=session.client_id, error=error.reason)
            await asyncio.sleep(RETRY_SECONDS)
            if session.loading is peer:
                session.loading = None
                self._broker.turns.pump_later(session)
            return
        if session.loading is not peer:
            return
        session.loading = None
        entries = [self._entry(session, stored) for stored in part]
        unsent = [entry for entry in entries if not entry.dup]
        if unsent and not journal.relaxed:
            # after a crash they may have been sent: they get DUP then, and are not dropped
            hold = journal.will_send(session, unsent[-1].number)
            for entry in unsent:
                entry.hold = hold
        outgoing.load(entries, complete=is_last and outgoing.spill <= committed)
        self._broker.turns.pump_later(session)

    def _entry(self, session: Session, stored: StoredMessage) -> Entry:
        message = Message(
            stored.topic,
            stored.payload,
            stored.qos,
            stored.retain,
            properties=unpacked(stored.properties),
            expires_ms=stored.expires_ms,
        )
        message.id = stored.message_id or 0
        entry = Entry(
            session,
            message,
            stored.number,
            stored.qos,
            stored.retain,
            split(stored.identifiers),
            stored.share,
            stored.replay,
        )
        entry.dup = stored.number <= session.outgoing.sent
        if stored.released:
            entry.state = State.RELEASED
        return entry

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
