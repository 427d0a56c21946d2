"""PUBLISH (3.3): the packet that everything else exists for, and the one that has to be fast.

`read_publish` is the decoder's hot path: it works on the shared receive buffer, copies only topic and
payload, and looks a topic up before validating it again. The encoder's is `outgoing.py`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.errors import ProtocolError, malformed, violation
from holdfast.broker.packets.message import MESSAGE_FIELDS, MessageProperties
from holdfast.broker.packets.outgoing import OutgoingMessage
from holdfast.broker.packets.properties import PropertySet
from holdfast.broker.packets.reason import Reason
from holdfast.broker.packets.wire import Reader, text, write_u16
from holdfast.broker.topics.syntax import topic_name_fault

DUP: Final = 0x08
RETAIN: Final = 0x01
_CACHED_TOPIC: Final = 200
"""Longer topics are validated each time: the cache of 4,096 then stays under a few megabytes."""


class Publish(msgspec.Struct, frozen=True, gc=False):
    """`packet_id` is 0 at QoS 0, `topic_alias` 0 when there is none.

    `topic` is empty where only the alias says it; the session puts the topic back.
    `properties` is None when the message has none, which is never the same as an empty set of them.
    """

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: MessageProperties | None = None
    topic_alias: int = 0
    subscription_ids: tuple[int, ...] = ()


PUBLISH_PROPERTIES: Final = PropertySet(
    (*MESSAGE_FIELDS, known.TOPIC_ALIAS, known.SUBSCRIPTION_IDS), MessageProperties, Publish
)


def read_publish(data: bytes, first: int, at: int, end: int, v5: bool, from_client: bool) -> Publish:
    """The PUBLISH between `at` (behind the fixed header) and `end` of a buffer.

    The decoder has already refused QoS 3 and DUP at QoS 0, which show in the first byte.
    """
    if end - at < 2:
        raise malformed("3.3.2.1", "PUBLISH ends before its topic")
    topic_at = at + 2
    at = topic_at + (data[at] << 8 | data[at + 1])
    if at > end:
        raise malformed("3.3.2.1", "the topic is longer than the packet")
    raw = data[topic_at:at]
    topic = _known_topic(raw) if len(raw) <= _CACHED_TOPIC else _topic(raw)
    qos = first >> 1 & 3
    packet_id = 0
    if qos:
        if end - at < 2:
            raise malformed("3.3.2.2", "PUBLISH ends before its packet identifier")
        packet_id = data[at] << 8 | data[at + 1]
        if not packet_id:
            raise violation("MQTT-2.2.1-3", "the packet identifier is 0")
        at += 2
    if not v5:
        if not topic:
            raise malformed("MQTT-4.7.3-1", "the topic is empty")
        return Publish(topic, data[at:end], qos, first & RETAIN != 0, first & DUP != 0, packet_id)
    if at < end and data[at] == 0:
        if not topic:
            raise violation("3.3.2.1", "neither a topic nor a topic alias")
        return Publish(topic, data[at + 1 : end], qos, first & RETAIN != 0, first & DUP != 0, packet_id)
    return _with_properties(topic, qos, first, packet_id, Reader(data, at, end), from_client)


def _with_properties(
    topic: str, qos: int, first: int, packet_id: int, reader: Reader, from_client: bool
) -> Publish:
    found = PUBLISH_PROPERTIES.read(reader)
    subscription_ids: tuple[int, ...] = found.pop("subscription_ids", ())
    if subscription_ids and from_client:
        raise violation("MQTT-3.3.4-6", "a client sent a subscription identifier")
    alias: int | None = found.pop("topic_alias", None)
    if alias is None and not topic:
        raise violation("3.3.2.1", "neither a topic nor a topic alias")
    if alias == 0:
        raise ProtocolError(Reason.TOPIC_ALIAS_INVALID, "MQTT-3.3.2-8", "the topic alias is 0")
    return Publish(
        topic,
        reader.rest(),
        qos,
        first & RETAIN != 0,
        first & DUP != 0,
        packet_id,
        MessageProperties(**found) if found else None,
        alias or 0,
        subscription_ids,
    )


def _topic(raw: bytes) -> str:
    topic = text(raw)
    if topic:
        fault = topic_name_fault(topic)
        if fault is not None:
            raise malformed("MQTT-3.3.2-2" if fault == "MQTT-4.7.0-1" else fault, "not a topic name")
    return topic


_known_topic = lru_cache(maxsize=4_096)(_topic)


def payload_fits_its_format(payload: bytes, properties: MessageProperties | None) -> bool:
    """Whether a payload that says it is UTF-8 (3.3.2.3.2) is; the answer to one that is not is 0x99."""
    if properties is None or properties.payload_format != 1:
        return True
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def encode_publish(packet: Publish, version: int) -> bytes:
    """One PUBLISH for one receiver; for many, see `OutgoingMessage`."""
    head, tail = OutgoingMessage(packet.topic, packet.payload, packet.properties).parts(
        version,
        packet.qos,
        packet.retain,
        dup=packet.dup,
        topic_alias=packet.topic_alias,
        subscription_ids=packet.subscription_ids,
    )
    return head + write_u16(packet.packet_id) + tail if packet.qos else head + tail
