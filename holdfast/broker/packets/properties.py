"""The properties of MQTT 5.0 (section 2.2.2.2): what each is called, how it is written, where it may appear.

A packet's properties are fields of its struct; a `PropertySet` ties the two together by field name, so that
a packet says in one line which properties it has. A field at its default value is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.broker.packets.errors import malformed, violation
from holdfast.broker.packets.wire import (
    Reader,
    write_binary,
    write_string,
    write_u8,
    write_u16,
    write_u32,
    write_varint,
)
from holdfast.broker.topics.syntax import topic_name_fault


class Property(NamedTuple):
    """One property: `read` and `write` carry its type and its value rules."""

    id: int
    name: str
    read: Callable[[Reader], Any]
    write: Callable[[Any], bytes]
    repeats: bool = False


def _flag(clause: str) -> Callable[[Reader], bool]:
    def read(reader: Reader) -> bool:
        value = reader.u8()
        if value > 1:
            raise violation(clause, f"a property that is 0 or 1 has the value {value}")
        return value == 1

    return read


def _bit(reader: Reader) -> int:
    value = reader.u8()
    if value > 1:
        raise violation("2.2.2.2", f"a property that is 0 or 1 has the value {value}")
    return value


def _positive(read: Callable[[Reader], int], clause: str) -> Callable[[Reader], int]:
    def read_positive(reader: Reader) -> int:
        value = read(reader)
        if value == 0:
            raise violation(clause, "a property that must not be zero is zero")
        return value

    return read_positive


def _response_topic(reader: Reader) -> str:
    topic = reader.string()
    if topic_name_fault(topic) is not None:
        raise violation("MQTT-3.3.2-14", "the response topic is not a topic name")
    return topic


def _pair(reader: Reader) -> tuple[str, str]:
    return reader.string(), reader.string()


def _write_pair(pair: tuple[str, str]) -> bytes:
    return write_string(pair[0]) + write_string(pair[1])


PAYLOAD_FORMAT = Property(0x01, "payload_format", _bit, write_u8)
MESSAGE_EXPIRY = Property(0x02, "message_expiry", Reader.u32, write_u32)
CONTENT_TYPE = Property(0x03, "content_type", Reader.string, write_string)
RESPONSE_TOPIC = Property(0x08, "response_topic", _response_topic, write_string)
CORRELATION_DATA = Property(0x09, "correlation_data", Reader.binary, write_binary)
SUBSCRIPTION_ID = Property(0x0B, "subscription_id", _positive(Reader.varint, "3.8.2.1.2"), write_varint)
SUBSCRIPTION_IDS = Property(
    0x0B, "subscription_ids", _positive(Reader.varint, "3.3.2.3.8"), write_varint, repeats=True
)
SESSION_EXPIRY = Property(0x11, "session_expiry", Reader.u32, write_u32)
ASSIGNED_CLIENT_ID = Property(0x12, "assigned_client_id", Reader.string, write_string)
SERVER_KEEP_ALIVE = Property(0x13, "server_keep_alive", Reader.u16, write_u16)
AUTHENTICATION_METHOD = Property(0x15, "authentication_method", Reader.string, write_string)
AUTHENTICATION_DATA = Property(0x16, "authentication_data", Reader.binary, write_binary)
REQUEST_PROBLEM_INFORMATION = Property(0x17, "request_problem_information", _flag("3.1.2.11.7"), write_u8)
WILL_DELAY = Property(0x18, "delay", Reader.u32, write_u32)
REQUEST_RESPONSE_INFORMATION = Property(0x19, "request_response_information", _flag("3.1.2.11.6"), write_u8)
RESPONSE_INFORMATION = Property(0x1A, "response_information", Reader.string, write_string)
SERVER_REFERENCE = Property(0x1C, "server_reference", Reader.string, write_string)
REASON_STRING = Property(0x1F, "reason_string", Reader.string, write_string)
RECEIVE_MAXIMUM = Property(0x21, "receive_maximum", _positive(Reader.u16, "3.1.2.11.3"), write_u16)
TOPIC_ALIAS_MAXIMUM = Property(0x22, "topic_alias_maximum", Reader.u16, write_u16)
TOPIC_ALIAS = Property(0x23, "topic_alias", Reader.u16, write_u16)
MAXIMUM_QOS = Property(0x24, "maximum_qos", _bit, write_u8)
RETAIN_AVAILABLE = Property(0x25, "retain_available", _flag("3.2.2.3.5"), write_u8)
USER_PROPERTIES = Property(0x26, "user_properties", _pair, _write_pair, repeats=True)
MAXIMUM_PACKET_SIZE = Property(0x27, "maximum_packet_size", _positive(Reader.u32, "3.1.2.11.4"), write_u32)
WILDCARDS_AVAILABLE = Property(0x28, "wildcards_available", _flag("3.2.2.3.11"), write_u8)
SUBSCRIPTION_IDS_AVAILABLE = Property(0x29, "subscription_ids_available", _flag("3.2.2.3.12"), write_u8)
SHARED_AVAILABLE = Property(0x2A, "shared_available", _flag("3.2.2.3.13"), write_u8)

NONE: Final = b"\x00"
"""What a packet without properties carries in their place [MQTT-2.2.2-1]."""


class PropertySet:
    """The properties one packet type may carry, bound to the fields of its struct."""

    __slots__ = ("_by_id", "_writers")

    def __init__(self, properties: Iterable[Property], *structs: type[msgspec.Struct]) -> None:
        defaults = {
            field.name: field.default for struct in structs for field in msgspec.structs.fields(struct)
        }
        self._by_id = {known.id: known for known in properties}
        self._writers = tuple(
            (write_u8(known.id), known, defaults[known.name]) for known in self._by_id.values()
        )

    def read(self, reader: Reader) -> dict[str, Any]:
        """The properties found, by field name; what is absent is left to the struct's defaults."""
        found: dict[str, Any] = {}
        size = reader.varint()
        if not size:
            return found
        packet_end, end = reader.end, reader.at + size
        if end > packet_end:
            raise malformed("2.2.2.1", "the properties are longer than the packet")
        reader.end = end
        by_id = self._by_id
        while reader.at < end:
            known = by_id.get(reader.varint())
            if known is None:
                raise malformed("2.2.2.2", "a property is unknown, or not one of this packet")
            value = known.read(reader)
            if known.repeats:
                found.setdefault(known.name, []).append(value)
            elif known.name in found:
                raise violation("2.2.2.2", f"the property {known.name} is there twice")
            else:
                found[known.name] = value
        reader.end = packet_end
        for name, value in found.items():
            if type(value) is list:
                found[name] = tuple(value)
        return found

    def fields(self, packet: msgspec.Struct) -> bytes:
        """The encoded properties of a packet, without their length."""
        parts: list[bytes] = []
        for prefix, known, default in self._writers:
            value = getattr(packet, known.name)
            if value == default:
                continue
            if known.repeats:
                for each in value:
                    parts += (prefix, known.write(each))
            else:
                parts += (prefix, known.write(value))
        return b"".join(parts)

    def write(self, packet: msgspec.Struct) -> bytes:
        """The encoded properties of a packet, with their length before them."""
        fields = self.fields(packet)
        return write_varint(len(fields)) + fields
