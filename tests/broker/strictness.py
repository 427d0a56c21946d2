"""What no server may do, watched on every connection of the strict client, whatever the test is about.

It sees each packet that goes out or comes in and raises `Broken` with the statement that a server broke. It knows one
connection: what a session keeps over a reconnect is the test's business.
"""

from __future__ import annotations

import msgspec

from holdfast.broker.packets import (
    V5,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    encode,
)

FAILED = 0x80


class Broken(AssertionError):
    """The server broke a statement of the standard."""


class Watch:
    def __init__(self, version: int) -> None:
        self.version = version
        self._connect: Connect | None = None
        self._connack: Connack | None = None
        self._aliases: dict[int, str] = {}
        self._theirs: dict[int, int] = {}
        """Messages that the server has begun and we have not ended: packet identifier → QoS."""
        self._released: set[int] = set()
        self._puback: list[int] = []
        """Our own messages, in the order in which they were sent, that wait for PUBACK; for PUBREC; for PUBCOMP."""
        self._pubrec: list[int] = []
        self._pubcomp: list[int] = []
        self._requests: dict[tuple[type[Packet], int], int] = {}
        """Subscribe and unsubscribe requests that wait, and how many filters each has."""
        self._pings = 0

    # -- what we send

    def sent(self, packet: Packet) -> None:
        match packet:
            case Connect():
                self._connect = packet
            case Publish(qos=1):
                self._puback.append(packet.packet_id)
            case Publish(qos=2):
                self._pubrec.append(packet.packet_id)
            case Pubrel():
                self._pubcomp.append(packet.packet_id)
            case Puback():
                self._theirs.pop(packet.packet_id, None)
            case Pubrec() if packet.reason >= FAILED:
                self._theirs.pop(packet.packet_id, None)
            case Pubcomp():
                self._theirs.pop(packet.packet_id, None)
                self._released.discard(packet.packet_id)
            case Subscribe():
                self._requests[Suback, packet.packet_id] = len(packet.subscriptions)
            case Unsubscribe():
                self._requests[Unsuback, packet.packet_id] = len(packet.filters)
            case Pingreq():
                self._pings += 1

    # -- what comes

    def received(self, packet: Packet) -> Packet:
        """The packet, with the topic that an alias stands for put back."""
        self._in_its_place(packet)
        self._fits(packet)
        match packet:
            case Connack():
                self._connack = packet
            case Publish():
                return self._message(packet)
            case Puback():
                self._first_of(self._puback, packet.packet_id, "MQTT-4.6.0-2")
            case Pubrec():
                self._first_of(self._pubrec, packet.packet_id, "MQTT-4.6.0-3")
            case Pubcomp():
                self._one_of(self._pubcomp, packet.packet_id, "MQTT-2.2.1-5")
            case Pubrel():
                self._released.add(packet.packet_id)
            case Suback() | Unsuback():
                self._answer(packet)
            case Pingresp():
                self._pings -= 1
                broken_if(self._pings < 0, "3.13", "a PINGRESP that nobody asked for")
        return packet

    def _in_its_place(self, packet: Packet) -> None:
        if isinstance(packet, Connack):
            broken_if(self._connack is not None, "MQTT-3.2.0-2", "a second CONNACK")
            broken_if(self._connect is None, "MQTT-3.2.0-1", "CONNACK without CONNECT")
        elif self._connack is None:
            broken_if(isinstance(packet, Disconnect), "MQTT-3.14.0-1", "DISCONNECT before CONNACK")
            broken_if(not isinstance(packet, Auth), "MQTT-3.2.0-1", f"{type(packet).__name__} before CONNACK")
        if isinstance(packet, Auth):
            named = self._connect is not None and self._connect.authentication_method is not None
            broken_if(not named, "MQTT-4.12.0-6", "AUTH to a client that named no method")

    def _fits(self, packet: Packet) -> None:
        connect = self._connect
        if self.version != V5 or connect is None:
            return
        limit = connect.maximum_packet_size
        if limit is not None:
            size = len(encode(packet, self.version))
            broken_if(size > limit, "MQTT-3.1.2-24", f"{size} bytes to a client that takes {limit}")
        if not connect.request_problem_information and not isinstance(packet, Publish | Connack | Disconnect):
            told = getattr(packet, "reason_string", None) or getattr(packet, "user_properties", ())
            broken_if(bool(told), "MQTT-3.1.2-29", "a reason string or user property that was not wanted")

    def _message(self, packet: Publish) -> Publish:
        if packet.topic_alias:
            packet = self._by_alias(packet)
        if not packet.qos:
            return packet
        number = packet.packet_id
        broken_if(number in self._theirs, "MQTT-2.2.1-4", f"identifier {number} is in use")
        broken_if(number in self._released, "MQTT-4.3.3-6", f"PUBLISH {number} after its PUBREL")
        self._theirs[number] = packet.qos
        most = 65_535 if self._connect is None else self._connect.receive_maximum
        broken_if(len(self._theirs) > most, "MQTT-3.3.4-9", f"more than {most} unacknowledged messages")
        return packet

    def _by_alias(self, packet: Publish) -> Publish:
        most = 0 if self._connect is None else self._connect.topic_alias_maximum
        broken_if(packet.topic_alias > most, "MQTT-3.1.2-26", f"alias {packet.topic_alias} above {most}")
        if packet.topic:
            self._aliases[packet.topic_alias] = packet.topic
            return packet
        topic = self._aliases.get(packet.topic_alias)
        broken_if(
            topic is None, "MQTT-3.3.2-7", f"alias {packet.topic_alias} was not said on this connection"
        )
        return msgspec.structs.replace(packet, topic=topic)

    def _answer(self, packet: Suback | Unsuback) -> None:
        asked = self._requests.pop((type(packet), packet.packet_id), None)
        kind = type(packet)
        clause = "MQTT-3.8.4-2" if kind is Suback else "MQTT-3.10.4-5"
        broken_if(asked is None, clause, f"{packet} answers nothing that was asked")
        if kind is Suback or self.version == V5:
            clause = "MQTT-3.8.4-6" if kind is Suback else "MQTT-3.10.4-6"
            broken_if(len(packet.reasons) != asked, clause, f"{packet} for {asked} filters")

    def _first_of(self, waiting: list[int], number: int, clause: str) -> None:
        broken_if(not waiting or waiting[0] != number, clause, f"{number} answered, {waiting} are waiting")
        del waiting[0]

    def _one_of(self, waiting: list[int], number: int, clause: str) -> None:
        broken_if(number not in waiting, clause, f"{number} answered, {waiting} are waiting")
        waiting.remove(number)


def broken_if(wrong: bool, clause: str, what: str) -> None:
    if wrong:
        raise Broken(f"{what} [{clause}]")
