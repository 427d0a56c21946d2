"""PUBACK, PUBREC, PUBREL, PUBCOMP (3.4 to 3.7): the four answers that carry a message's state.

All four have one shape. In 3.1.1 there is only the identifier; in 5.0 a success without properties looks
exactly the same, so that is the fast path.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.errors import malformed, violation
from holdfast.broker.packets.properties import PropertySet
from holdfast.broker.packets.reason import PUBLISH_ACK_REASONS, RELEASE_REASONS, Reason
from holdfast.broker.packets.wire import Reader, frame, write_u8, write_u16


class Acknowledgement(msgspec.Struct, frozen=True, gc=False):
    """What the four have in common."""

    packet_id: int
    reason: int = 0
    reason_string: str | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


class Puback(Acknowledgement, frozen=True, gc=False):
    """A QoS 1 message has arrived."""


class Pubrec(Acknowledgement, frozen=True, gc=False):
    """A QoS 2 message has arrived, and is kept until it is released."""


class Pubrel(Acknowledgement, frozen=True, gc=False):
    """The sender will not send the message again."""


class Pubcomp(Acknowledgement, frozen=True, gc=False):
    """The identifier is free."""


PROPERTIES: Final = PropertySet((known.REASON_STRING, known.USER_PROPERTIES), Acknowledgement)
_FIRST: Final[dict[type[Acknowledgement], int]] = {Puback: 0x40, Pubrec: 0x50, Pubrel: 0x62, Pubcomp: 0x70}
_REASONS: Final[dict[type[Acknowledgement], tuple[frozenset[int], str]]] = {
    Puback: (PUBLISH_ACK_REASONS, "MQTT-3.4.2-1"),
    Pubrec: (PUBLISH_ACK_REASONS, "MQTT-3.5.2-1"),
    Pubrel: (RELEASE_REASONS, "MQTT-3.6.2-1"),
    Pubcomp: (RELEASE_REASONS, "MQTT-3.7.2-1"),
}
Ack = TypeVar("Ack", bound=Acknowledgement)


def read_acknowledgement(kind: type[Ack], v5: bool, data: bytes, at: int, end: int) -> Ack:
    if end - at < 2:
        raise malformed("2.2.1", "an acknowledgement ends before its packet identifier")
    packet_id = data[at] << 8 | data[at + 1]
    if not packet_id:
        raise violation("MQTT-2.2.1-5", "the packet identifier is 0")
    if end - at == 2:
        return kind(packet_id)
    if not v5:
        raise malformed("2.1.4", "the packet is longer than its content")
    reader = Reader(data, at + 2, end)
    reason = reader.u8()
    allowed, clause = _REASONS[kind]
    if reason not in allowed:
        raise violation(clause, f"{kind.__name__.upper()} does not know the reason {reason:#04x}")
    found = PROPERTIES.read(reader) if reader.at < reader.end else {}
    reader.finish()
    return kind(packet_id, Reason(reason), **found)


def encode_acknowledgement(packet: Acknowledgement, version: int) -> bytes:
    first = _FIRST[type(packet)]
    if version == 5:
        if packet.reason_string is not None or packet.user_properties:
            body = write_u8(packet.reason), PROPERTIES.write(packet)
            return frame(first, write_u16(packet.packet_id), *body)
        if packet.reason:
            return bytes((first, 3, packet.packet_id >> 8, packet.packet_id & 0xFF, packet.reason))
    return bytes((first, 2, packet.packet_id >> 8, packet.packet_id & 0xFF))
