"""PUBLISH from clients: checked, routed, acknowledged when it is safe (3.3, 4.3).

Packets are taken in runs: consecutive ones of one read with the same topic share the permission, the plan, and at
QoS 0 the bytes that go out.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from holdfast.broker.hooks import Access
from holdfast.broker.listeners import Listening
from holdfast.broker.message import Message
from holdfast.broker.packets import (
    V5,
    Packet,
    ProtocolError,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    encode,
    payload_fits_its_format,
)
from holdfast.broker.packets.reason import FAILURE
from holdfast.broker.peer import Peer, Waiting
from holdfast.broker.router import Plan
from holdfast.broker.session.session import Session
from holdfast.broker.topics import count_levels
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

PUBACK_HEAD: Final = encode(Puback(1), V5)[:2]

log = get_logger("broker")


class Publishing:
    MOST_UNACKNOWLEDGED: Final = 2_000
    """Acknowledgements that a client may have to wait for before it is read again."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = broker.settings
        self._receive_maximum = settings.receive_maximum
        self._max_levels = settings.max_levels
        self._max_payload = settings.max_payload
        self._max_qos = settings.max_qos
        self._retain = settings.retain
        self._closes_denied = settings.denied_publish == "close"

    def take(self, peer: Peer, packets: list[Packet], at: int) -> int:
        """Handles the run that begins at `at`; answers where the next packet is."""
        first = packets[at]
        assert isinstance(first, Publish)
        end = at + 1
        topic, alias = first.topic, first.topic_alias
        while (
            end < len(packets)
            and type(packet := packets[end]) is Publish
            and packet.topic == topic
            and packet.topic_alias == alias
        ):
            end += 1
        run: list[Publish] = packets[at:end]  # type: ignore[assignment]
        if alias:
            topic = self._resolve(peer, first)
        session = peer.session
        assert session is not None
        verdict = self._may_publish(session, topic)
        if not isinstance(verdict, bool):
            peer.think()
            self._broker.spawn(self._take_when_known(peer, session, topic, run, verdict))
        else:
            self._take_run(peer, session, topic, run, allowed=verdict)
        return end

    async def _take_when_known(
        self, peer: Peer, session: Session, topic: str, run: list[Publish], verdict: Awaitable[bool]
    ) -> None:
        try:
            allowed = await verdict
        except Exception:
            log.exception("publish_not_decided", client=session.client_id)
            peer.disconnect(Reason.UNSPECIFIED)
            return
        if peer.is_open:
            peer.guarded(lambda: self._take_run(peer, session, topic, run, allowed=allowed))
            peer.go_on()

    def _may_publish(self, session: Session, topic: str) -> bool | Awaitable[bool]:
        if topic.startswith("$SYS/"):
            return False
        return self._broker.ask(session, Access.PUBLISH, topic)

    def _resolve(self, peer: Peer, packet: Publish) -> str:
        """The topic that an alias stands for, or stands for from now on (3.3.2.3.4)."""
        alias = packet.topic_alias
        if alias > self._broker.settings.topic_alias_max:
            raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, "MQTT-3.3.2-9", "the topic alias is too high")
        known = peer.their_aliases
        if known is None:
            known = peer.their_aliases = {}
        if packet.topic:
            known[alias] = packet.topic
            return packet.topic
        topic = known.get(alias)
        if topic is None:
            raise ProtocolError(Reason.PROTOCOL_ERROR, "3.3.2.3.4", "nobody said what this topic alias means")
        return topic

    # -- a run

    def _take_run(
        self, peer: Peer, session: Session, topic: str, run: list[Publish], *, allowed: bool
    ) -> None:
        broker = self._broker
        counters = broker.counters
        counters.publish_received += len(run)
        reason = Reason.SUCCESS
        if not allowed:
            reason = Reason.NOT_AUTHORIZED
        elif topic.count("/") >= self._max_levels and count_levels(topic) > self._max_levels:
            reason = Reason.TOPIC_NAME_INVALID
        hears = broker.listeners.match(topic)
        plans: list[Plan | None] = [None, None]
        straight: list[Message] = []
        for packet in run:
            counters.publish_bytes_received += len(packet.payload)
            why = reason or self._fault(packet)
            if why:
                self._deny(peer, session, packet, topic, why)
                if peer.is_closed:
                    return
                continue
            message = self._message(topic, packet)
            if hears:
                self._hear(peer, session, packet, message, hears)
                continue
            kept = packet.qos > 0
            plan = plans[kept]
            if plan is None:
                plan = plans[kept] = broker.router.plan(topic, session, kept=kept)
            if not kept and not packet.retain:
                straight.append(message)
                continue
            if straight:
                self._fan_out(plans[0], straight)
                straight = []
            self._one(peer, session, packet, message, plan)
            if peer.is_closed:
                return
        if straight:
            self._fan_out(plans[0], straight)
        if broker.journal.weight > broker.journal.HEAVY:
            broker.wait_for_disk(peer)

    def _fan_out(self, plan: Plan | None, messages: list[Message]) -> None:
        assert plan is not None
        if not plan.is_empty():
            self._broker.router.fan_out(plan, messages)

    def _message(self, topic: str, packet: Publish) -> Message:
        properties = packet.properties
        expires_ms = None
        if properties is not None and properties.message_expiry is not None:
            expires_ms = self._broker.clock.now_ms() + properties.message_expiry * 1000
        return Message(topic, packet.payload, packet.qos, packet.retain, properties, expires_ms)

    def _fault(self, packet: Publish) -> Reason:
        """Why this one packet is not taken; what ends the connection raises."""
        if packet.qos > self._max_qos:
            raise ProtocolError(Reason.QOS_NOT_SUPPORTED, "MQTT-3.2.2-11", "this QoS is not supported here")
        if packet.retain and not self._retain:
            raise ProtocolError(Reason.RETAIN_NOT_SUPPORTED, "MQTT-3.2.2-14", "nothing is retained here")
        if self._max_payload and len(packet.payload) > self._max_payload:
            self._broker.counters.drops["too_big_to_publish"] += 1
            return Reason.IMPLEMENTATION_SPECIFIC
        if packet.properties is not None and not payload_fits_its_format(packet.payload, packet.properties):
            return Reason.PAYLOAD_FORMAT_INVALID
        return Reason.SUCCESS

    def _deny(self, peer: Peer, session: Session, packet: Publish, topic: str, why: Reason) -> None:
        """Not taken: 5.0 is told so, 3.1.1 has no words for it [MQTT-3.3.5-2 (3.1.1)]."""
        if peer.is_worth_a_line():
            log.info("publish_denied", client=session.client_id, topic=topic, reason=why.name.lower())
        if why is Reason.NOT_AUTHORIZED:
            self._broker.counters.drops["not_allowed_to_publish"] += 1
            if self._closes_denied and peer.version != V5:
                peer.disconnect(Reason.NOT_AUTHORIZED)
                return
        if packet.qos == 1:
            peer.acknowledge(encode(Puback(packet.packet_id, why), peer.version), packet.packet_id)
        elif packet.qos == 2:
            if packet.packet_id in session.incoming:
                self._repeated(peer, packet)
                return
            if peer.version != V5:  # it will be released, and has to be known then
                self._receive_id(session, packet.packet_id)
            peer.acknowledge(encode(Pubrec(packet.packet_id, why), peer.version), packet.packet_id)

    # -- one that a listener in this process has to take first

    def _hear(
        self, peer: Peer, session: Session, packet: Publish, message: Message, hears: list[Listening]
    ) -> None:
        packet_id = packet.packet_id
        place: Waiting | None = None
        if packet.qos:
            under_way = session.hearing.get(packet_id) if session.hearing else None
            if packet.qos == 2 and under_way is None and packet_id in session.incoming:
                self._repeated(peer, packet)
                return
            answer = Puback(packet_id) if packet.qos == 1 else Pubrec(packet_id)
            place = peer.acknowledge(encode(answer, peer.version), packet_id, ready=False)
            if packet.qos == 2 and under_way is not None:
                under_way.acknowledgement = place  # its first connection is gone, its listener still at it
                return
        message.waiting = 1
        message.acknowledgement = place
        if packet.qos == 2:
            if session.hearing is None:
                session.hearing = {}
            session.hearing[packet_id] = message

        def heard(taken: bool) -> None:
            if session.hearing is not None:
                session.hearing.pop(packet_id, None)
            if not taken:
                message.failed()
                return
            if not any(listening.takes for listening in hears):
                plan = self._broker.router.plan(message.topic, session, kept=message.qos > 0)
                self.route(plan, message)
            if message.qos == 2 and not session.ended:
                self._receive_id(session, packet_id)
                if session.persistent:
                    self._broker.journal.holds(message)
            message.settled()
            self._broker.turns.commit_later()

        self._broker.listeners.hear(peer, session, message, hears, heard)

    # -- one message of QoS 1 or 2, or a retained one

    def _one(self, peer: Peer, session: Session, packet: Publish, message: Message, plan: Plan) -> None:
        if not self._is_new(peer, session, packet):
            return
        message.waiting = 1  # nothing is settled before it is routed
        reason = self.route(plan, message)
        self._answer(peer, session, packet, message, reason)
        self._broker.turns.commit_later()  # a retained message may be all that there is to write, and nobody gets it

    def route(self, plan: Plan, message: Message) -> Reason:
        """To everybody, and into the retained store."""
        received = self._broker.router.route(plan, message)
        if message.retain:
            if not self._broker.retained_messages.keep(message):
                self._broker.counters.drops["not_retained"] += 1
                return Reason.QUOTA_EXCEEDED
            if message.qos:
                self._broker.journal.holds(message)
        return Reason.SUCCESS if received else Reason.NO_MATCHING_SUBSCRIBERS

    def _is_new(self, peer: Peer, session: Session, packet: Publish) -> bool:
        if not packet.qos:
            return True
        waiting = peer.acknowledgements
        if peer.version == V5 and (waiting or session.incoming):
            on_their_way = (len(waiting) if waiting else 0) + len(session.incoming)
            if on_their_way >= self._receive_maximum and packet.packet_id not in session.incoming:
                raise ProtocolError(
                    Reason.RECEIVE_MAXIMUM_EXCEEDED, "MQTT-3.3.4-9", "more messages than the receive maximum"
                )
        if packet.qos == 2 and packet.packet_id in session.incoming:
            self._repeated(peer, packet)
            return False
        return True

    def _repeated(self, peer: Peer, packet: Publish) -> None:
        """A QoS 2 message that is known: acknowledged again, when it is on disk, and not routed [MQTT-4.3.3-10]."""
        known = Message(packet.topic, b"", 2)
        known.waiting = 1
        self._broker.journal.holds(known)
        frame = encode(Pubrec(packet.packet_id), peer.version)
        place = peer.acknowledge(frame, packet.packet_id, ready=False)
        known.acknowledgement = place
        known.settled()

    def _answer(
        self, peer: Peer, session: Session, packet: Publish, message: Message, reason: Reason
    ) -> None:
        """PUBACK or PUBREC, now or when everything that the message waits for has happened."""
        if not packet.qos:
            message.waiting -= 1
            return
        said = reason if peer.version == V5 else Reason.SUCCESS
        if packet.qos == 1:
            if said is Reason.SUCCESS:  # what nearly every message is answered with
                frame = PUBACK_HEAD + packet.packet_id.to_bytes(2, "big")
            else:
                frame = encode(Puback(packet.packet_id, said), peer.version)
        else:
            frame = encode(Pubrec(packet.packet_id, said), peer.version)
            if said < FAILURE:
                self._receive_id(session, packet.packet_id)
                if session.persistent:
                    self._broker.journal.holds(message)
        message.waiting -= 1
        if not message.waiting:
            peer.acknowledge(frame, packet.packet_id)
        else:
            message.acknowledgement = peer.acknowledge(frame, packet.packet_id, ready=False)

    def _receive_id(self, session: Session, packet_id: int) -> None:
        session.incoming.receive(packet_id)
        if session.persistent:
            self._broker.journal.received_id(session, packet_id)

    def release(self, peer: Peer, packet: Pubrel) -> None:
        """PUBREL: the id is forgotten, on disk too before PUBCOMP says so [MQTT-4.3.3-11]."""
        session = peer.session
        assert session is not None
        known = session.incoming.release(packet.packet_id)
        reason = Reason.SUCCESS if known or peer.version != V5 else Reason.PACKET_ID_NOT_FOUND
        answer = encode(Pubcomp(packet.packet_id, reason), peer.version)
        if not session.persistent:
            peer.send(answer)
            return
        if known:
            self._broker.journal.released_id(session, packet.packet_id)
        self._broker.journal.reply(peer, answer)
        self._broker.turns.commit_later()
