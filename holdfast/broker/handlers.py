"""One handler per packet that a client sends, but for those with a room of their own: PUBLISH and PUBREL
(`publishing`), SUBSCRIBE and UNSUBSCRIBE (`subscribing`), CONNECT and AUTH (`admission`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.broker.packets import (
    PINGRESP_FRAME,
    V5,
    Auth,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    ProtocolError,
    Puback,
    Pubcomp,
    Pubrec,
    Pubrel,
    Reason,
    Subscribe,
    Unsubscribe,
    encode,
)
from holdfast.broker.packets.reason import FAILURE
from holdfast.broker.peer import Peer
from holdfast.broker.session.session import Session

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker


def _session_of(peer: Peer) -> Session:
    assert peer.session is not None  # an open connection has one
    return peer.session


class Handlers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_type: dict[type[Packet], Callable[[Peer, Any], None]] = {
            Connect: broker.admission.connect,
            Puback: self._puback,
            Pubrec: self._pubrec,
            Pubrel: broker.publishing.release,
            Pubcomp: self._pubcomp,
            Subscribe: broker.subscribing.subscribe,
            Unsubscribe: broker.subscribing.unsubscribe,
            Pingreq: self._pingreq,
            Disconnect: self._disconnect,
            Auth: broker.admission.reauthenticate,
        }

    def handle(self, peer: Peer, packet: Packet) -> None:
        self._by_type[type(packet)](peer, packet)

    def while_admitting(self, peer: Peer, packet: Packet) -> None:
        """Before CONNACK a client with enhanced authentication sends AUTH or DISCONNECT alone [MQTT-3.1.2-30]."""
        if isinstance(packet, Auth):
            self._broker.admission.answered(peer, packet)
        elif isinstance(packet, Disconnect):
            peer.left(will=False)
        else:
            raise ProtocolError(
                Reason.PROTOCOL_ERROR, "MQTT-3.1.2-30", "only AUTH or DISCONNECT may come before CONNACK"
            )

    def _puback(self, peer: Peer, packet: Puback) -> None:
        session = _session_of(peer)
        entry = session.outgoing.acknowledge(packet.packet_id)
        if entry is None:
            return
        if session.persistent:
            self._broker.journal.removed(entry)
        self._broker.turns.pump_later(session)

    def _pubrec(self, peer: Peer, packet: Pubrec) -> None:
        session = _session_of(peer)
        failed = packet.reason >= FAILURE
        entry = session.outgoing.receive(packet.packet_id, failed=failed)
        if entry is None:
            self._unknown(peer, session, packet, failed=failed)
            return
        journal = self._broker.journal
        self._broker.turns.pump_later(session)
        if failed:
            if session.persistent:
                journal.removed(entry)
            return
        answer = encode(Pubrel(packet.packet_id), peer.version)
        if not session.persistent:
            peer.send(answer)
            return
        journal.released(entry)
        journal.reply(peer, answer)

    def _unknown(self, peer: Peer, session: Session, packet: Pubrec, *, failed: bool) -> None:
        """A PUBREC of nothing is told so, unless its message may still be in the store."""
        if failed or session.outgoing.spilled:
            return
        reason = Reason.PACKET_ID_NOT_FOUND if peer.version == V5 else Reason.SUCCESS
        peer.send(encode(Pubrel(packet.packet_id, reason), peer.version))

    def _pubcomp(self, peer: Peer, packet: Pubcomp) -> None:
        session = _session_of(peer)
        entry = session.outgoing.complete(packet.packet_id)
        if entry is None:
            return
        if session.persistent:
            self._broker.journal.removed(entry)
        self._broker.turns.pump_later(session)

    def _pingreq(self, peer: Peer, _packet: Pingreq) -> None:
        peer.send(PINGRESP_FRAME)

    def _disconnect(self, peer: Peer, packet: Disconnect) -> None:
        """Only a plain goodbye takes the will back [MQTT-3.14.4-3]."""
        session = _session_of(peer)
        if packet.session_expiry is not None:
            if session.expiry == 0 and packet.session_expiry:
                raise ProtocolError(
                    Reason.PROTOCOL_ERROR,
                    "3.14.2.2.2",
                    "a session that was to end with its connection may not stay",
                )
            session.expiry = self._broker.admission.expiry_of(V5, False, packet.session_expiry)
        peer.left(will=packet.reason != Reason.SUCCESS)
