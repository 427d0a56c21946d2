"""SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK (3.8 to 3.11)."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.errors import malformed, violation
from holdfast.broker.packets.properties import PropertySet
from holdfast.broker.packets.reason import FAILURE, SUBACK_REASONS, UNSUBACK_REASONS, Reason
from holdfast.broker.packets.wire import Reader, frame, write_string, write_u8, write_u16
from holdfast.broker.topics.syntax import SHARE, shared_filter_fault, topic_filter_fault


class Subscription(msgspec.Struct, frozen=True, gc=False):
    """One filter of a SUBSCRIBE with its options."""

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class Subscribe(msgspec.Struct, frozen=True):
    packet_id: int
    subscriptions: tuple[Subscription, ...]
    subscription_id: int = 0
    user_properties: tuple[tuple[str, str], ...] = ()


class Suback(msgspec.Struct, frozen=True):
    """One reason per filter, in order: the granted QoS, or a v5 code that says why not."""

    packet_id: int
    reasons: tuple[int, ...]
    reason_string: str | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


class Unsubscribe(msgspec.Struct, frozen=True):
    packet_id: int
    filters: tuple[str, ...]
    user_properties: tuple[tuple[str, str], ...] = ()


class Unsuback(msgspec.Struct, frozen=True):
    """One reason per filter in 5.0; 3.1.1 carries none, and reads as none."""

    packet_id: int
    reasons: tuple[int, ...] = ()
    reason_string: str | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


SUBSCRIBE_PROPERTIES: Final = PropertySet((known.SUBSCRIPTION_ID, known.USER_PROPERTIES), Subscribe)
SUBACK_PROPERTIES: Final = PropertySet((known.REASON_STRING, known.USER_PROPERTIES), Suback)
UNSUBSCRIBE_PROPERTIES: Final = PropertySet((known.USER_PROPERTIES,), Unsubscribe)
UNSUBACK_PROPERTIES: Final = PropertySet((known.REASON_STRING, known.USER_PROPERTIES), Unsuback)


def _packet_id(reader: Reader) -> int:
    packet_id = reader.u16()
    if not packet_id:
        raise violation("MQTT-2.2.1-3", "the packet identifier is 0")
    return packet_id


def read_subscribe(reader: Reader, v5: bool) -> Subscribe:
    packet_id = _packet_id(reader)
    found = SUBSCRIBE_PROPERTIES.read(reader) if v5 else {}
    subscriptions = []
    while reader.at < reader.end:
        pattern = _filter(reader, v5)
        subscriptions.append(_subscription(pattern, reader.u8(), v5))
    if not subscriptions:
        raise violation("MQTT-3.8.3-2", "SUBSCRIBE without a topic filter")
    return Subscribe(packet_id, tuple(subscriptions), **found)


def _filter(reader: Reader, v5: bool) -> str:
    pattern = reader.string()
    # $share means nothing special in 3.1 and 3.1.1: there it is a filter like any other.
    fault = shared_filter_fault(pattern) if v5 and pattern.startswith(SHARE) else topic_filter_fault(pattern)
    if fault is not None:
        raise malformed(fault, "not a topic filter")
    return pattern


def _subscription(pattern: str, options: int, v5: bool) -> Subscription:
    qos = options & 3
    if not v5:
        if options > 2:
            raise malformed("MQTT-3.8.3-4 (3.1.1)", "the requested QoS is not 0, 1 or 2")
        return Subscription(pattern, qos)
    if options & 0xC0:
        raise malformed("MQTT-3.8.3-5", "reserved bits of the subscription options are set")
    if qos == 3:
        raise violation("3.8.3.1", "the requested QoS is 3")
    no_local = options & 0x04 != 0
    if no_local and pattern.startswith(SHARE):
        raise violation("MQTT-3.8.3-4", "no local on a shared subscription")
    retain_handling = options >> 4
    if retain_handling == 3:
        raise violation("3.8.3.1", "the retain handling is 3")
    return Subscription(pattern, qos, no_local, options & 0x08 != 0, retain_handling)


def encode_subscribe(packet: Subscribe, version: int) -> bytes:
    v5 = version == 5
    parts = [write_u16(packet.packet_id)]
    if v5:
        parts.append(SUBSCRIBE_PROPERTIES.write(packet))
    for each in packet.subscriptions:
        options = each.qos
        if v5:
            options |= each.no_local << 2 | each.retain_as_published << 3 | each.retain_handling << 4
        parts += (write_string(each.filter), write_u8(options))
    return frame(0x82, *parts)


def read_suback(reader: Reader, v5: bool) -> Suback:
    packet_id = _packet_id(reader)
    found = SUBACK_PROPERTIES.read(reader) if v5 else {}
    reasons = reader.rest()
    allowed = SUBACK_REASONS if v5 else (0, 1, 2, FAILURE)
    if not all(reason in allowed for reason in reasons):
        raise violation("MQTT-3.9.3-2", "SUBACK with a reason it does not know")
    return Suback(packet_id, tuple(map(Reason, reasons)), **found)


def encode_suback(packet: Suback, version: int) -> bytes:
    packet_id = write_u16(packet.packet_id)
    if version == 5:
        return frame(0x90, packet_id, SUBACK_PROPERTIES.write(packet), bytes(packet.reasons))
    return frame(0x90, packet_id, bytes(min(reason, FAILURE) for reason in packet.reasons))


def read_unsubscribe(reader: Reader, v5: bool) -> Unsubscribe:
    packet_id = _packet_id(reader)
    found = UNSUBSCRIBE_PROPERTIES.read(reader) if v5 else {}
    filters = []
    while reader.at < reader.end:
        filters.append(_filter(reader, v5))
    if not filters:
        raise violation("MQTT-3.10.3-2", "UNSUBSCRIBE without a topic filter")
    return Unsubscribe(packet_id, tuple(filters), **found)


def encode_unsubscribe(packet: Unsubscribe, version: int) -> bytes:
    parts = [write_u16(packet.packet_id)]
    if version == 5:
        parts.append(UNSUBSCRIBE_PROPERTIES.write(packet))
    parts += map(write_string, packet.filters)
    return frame(0xA2, *parts)


def read_unsuback(reader: Reader, v5: bool) -> Unsuback:
    packet_id = _packet_id(reader)
    if not v5:
        reader.finish()
        return Unsuback(packet_id)
    found = UNSUBACK_PROPERTIES.read(reader)
    reasons = reader.rest()
    if not UNSUBACK_REASONS.issuperset(reasons):
        raise violation("MQTT-3.11.3-2", "UNSUBACK with a reason it does not know")
    return Unsuback(packet_id, tuple(map(Reason, reasons)), **found)


def encode_unsuback(packet: Unsuback, version: int) -> bytes:
    packet_id = write_u16(packet.packet_id)
    if version == 5:
        return frame(0xB0, packet_id, UNSUBACK_PROPERTIES.write(packet), bytes(packet.reasons))
    return frame(0xB0, packet_id)
