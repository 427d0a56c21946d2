"""CONNECT (3.1) and CONNACK (3.2): how a connection introduces itself, and the answer."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.errors import ProtocolError, malformed, violation
from holdfast.broker.packets.message import MESSAGE_FIELDS, MESSAGE_PROPERTIES, MessageProperties
from holdfast.broker.packets.properties import PropertySet
from holdfast.broker.packets.reason import CONNACK_REASONS, Reason, connack_of_v3, connack_v3_of
from holdfast.broker.packets.wire import (
    Reader,
    frame,
    write_binary,
    write_string,
    write_u8,
    write_u16,
    write_varint,
)
from holdfast.broker.topics.syntax import topic_name_fault

V31: Final = 3
V311: Final = 4
V5: Final = 5

_NAME_OF: Final = {V31: "MQIsdp", V311: "MQTT", V5: "MQTT"}
_CLEAN: Final = 0x02
_WILL: Final = 0x04
_WILL_RETAIN: Final = 0x20
_PASSWORD: Final = 0x40
_USERNAME: Final = 0x80


class Will(msgspec.Struct, frozen=True, kw_only=True):
    """The message the server publishes when the connection ends badly."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    delay: int = 0
    properties: MessageProperties | None = None


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    version: int = V5
    client_id: str = ""
    clean_start: bool = True
    keep_alive: int = 0
    username: str | None = None
    password: bytes | None = None
    will: Will | None = None
    session_expiry: int = 0
    receive_maximum: int = 65_535
    maximum_packet_size: int | None = None
    topic_alias_maximum: int = 0
    request_response_information: bool = False
    request_problem_information: bool = True
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


class Connack(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` is a v5 code for every version; the codec translates."""

    session_present: bool = False
    reason: int = Reason.SUCCESS
    session_expiry: int | None = None
    receive_maximum: int = 65_535
    maximum_qos: int = 2
    retain_available: bool = True
    maximum_packet_size: int | None = None
    assigned_client_id: str | None = None
    topic_alias_maximum: int = 0
    reason_string: str | None = None
    wildcards_available: bool = True
    subscription_ids_available: bool = True
    shared_available: bool = True
    server_keep_alive: int | None = None
    response_information: str | None = None
    server_reference: str | None = None
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


CONNECT_PROPERTIES: Final = PropertySet(
    (
        known.SESSION_EXPIRY,
        known.RECEIVE_MAXIMUM,
        known.MAXIMUM_PACKET_SIZE,
        known.TOPIC_ALIAS_MAXIMUM,
        known.REQUEST_RESPONSE_INFORMATION,
        known.REQUEST_PROBLEM_INFORMATION,
        known.AUTHENTICATION_METHOD,
        known.AUTHENTICATION_DATA,
        known.USER_PROPERTIES,
    ),
    Connect,
)
WILL_PROPERTIES: Final = PropertySet((known.WILL_DELAY, *MESSAGE_FIELDS), Will, MessageProperties)
WILL_DELAY: Final = PropertySet((known.WILL_DELAY,), Will)
CONNACK_PROPERTIES: Final = PropertySet(
    (
        known.SESSION_EXPIRY,
        known.RECEIVE_MAXIMUM,
        known.MAXIMUM_QOS,
        known.RETAIN_AVAILABLE,
        known.MAXIMUM_PACKET_SIZE,
        known.ASSIGNED_CLIENT_ID,
        known.TOPIC_ALIAS_MAXIMUM,
        known.REASON_STRING,
        known.WILDCARDS_AVAILABLE,
        known.SUBSCRIPTION_IDS_AVAILABLE,
        known.SHARED_AVAILABLE,
        known.SERVER_KEEP_ALIVE,
        known.RESPONSE_INFORMATION,
        known.SERVER_REFERENCE,
        known.AUTHENTICATION_METHOD,
        known.AUTHENTICATION_DATA,
        known.USER_PROPERTIES,
    ),
    Connack,
)


def read_protocol_version(reader: Reader) -> int:
    """The first fields of CONNECT: they decide how the rest is read, and in which version to answer."""
    name = reader.string()
    if name not in ("MQTT", "MQIsdp"):
        raise ProtocolError(Reason.UNSUPPORTED_PROTOCOL_VERSION, "MQTT-3.1.2-1", "this is not MQTT")
    version = reader.u8()
    if _NAME_OF.get(version) != name:
        raise ProtocolError(
            Reason.UNSUPPORTED_PROTOCOL_VERSION, "MQTT-3.1.2-2", f"{name} level {version} is not spoken here"
        )
    return version


def read_connect(reader: Reader, version: int) -> Connect:
    """The rest of CONNECT, behind the protocol version."""
    flags = reader.u8()
    _check_connect_flags(flags, version)
    keep_alive = reader.u16()
    found = CONNECT_PROPERTIES.read(reader) if version == V5 else {}
    if "authentication_data" in found and "authentication_method" not in found:
        raise violation("3.1.2.11.10", "authentication data without an authentication method")
    client_id = reader.string()
    will = _read_will(reader, flags, version) if flags & _WILL else None
    username = reader.string() if flags & _USERNAME else None
    password = reader.binary() if flags & _PASSWORD else None
    reader.finish()
    return Connect(
        version=version,
        client_id=client_id,
        clean_start=flags & _CLEAN != 0,
        keep_alive=keep_alive,
        username=username,
        password=password,
        will=will,
        **found,
    )


def _check_connect_flags(flags: int, version: int) -> None:
    if flags & 0x01:
        raise malformed("MQTT-3.1.2-3", "the reserved connect flag is set")
    will_qos = flags >> 3 & 3
    if will_qos == 3:
        raise malformed("MQTT-3.1.2-12", "the will has QoS 3")
    if not flags & _WILL:
        if will_qos:
            raise malformed("MQTT-3.1.2-11", "a will QoS without a will")
        if flags & _WILL_RETAIN:
            raise malformed("MQTT-3.1.2-13", "will retain without a will")
    if version != V5 and flags & (_USERNAME | _PASSWORD) == _PASSWORD:
        raise malformed("MQTT-3.1.2-22 (3.1.1)", "a password without a user name")


def _read_will(reader: Reader, flags: int, version: int) -> Will:
    delay = 0
    message: MessageProperties | None = None
    if version == V5:
        found = WILL_PROPERTIES.read(reader)
        delay = found.pop("delay", 0)
        message = MessageProperties(**found) if found else None
    topic = reader.string()
    fault = topic_name_fault(topic)
    if fault is not None:
        raise malformed(fault, "the will topic is not a topic name")
    return Will(
        topic=topic,
        payload=reader.binary(),
        qos=flags >> 3 & 3,
        retain=flags & _WILL_RETAIN != 0,
        delay=delay,
        properties=message,
    )


def encode_connect(packet: Connect, version: int) -> bytes:
    """`version` is ignored: a CONNECT says its own."""
    version = packet.version
    parts = [
        write_string(_NAME_OF[version]),
        write_u8(version),
        write_u8(_connect_flags(packet)),
        write_u16(packet.keep_alive),
    ]
    if version == V5:
        parts.append(CONNECT_PROPERTIES.write(packet))
    parts.append(write_string(packet.client_id))
    will = packet.will
    if will is not None:
        if version == V5:
            parts.append(_will_properties(will))
        parts += (write_string(will.topic), write_binary(will.payload))
    if packet.username is not None:
        parts.append(write_string(packet.username))
    if packet.password is not None:
        parts.append(write_binary(packet.password))
    return frame(0x10, *parts)


def _connect_flags(packet: Connect) -> int:
    flags = _CLEAN if packet.clean_start else 0
    if packet.will is not None:
        flags |= _WILL | packet.will.qos << 3 | (_WILL_RETAIN if packet.will.retain else 0)
    if packet.username is not None:
        flags |= _USERNAME
    if packet.password is not None:
        flags |= _PASSWORD
    return flags


def _will_properties(will: Will) -> bytes:
    fields = WILL_DELAY.fields(will)
    if will.properties is not None:
        fields += MESSAGE_PROPERTIES.fields(will.properties)
    return write_varint(len(fields)) + fields


def read_connack(reader: Reader, version: int) -> Connack:
    acknowledge = reader.u8()
    if version == V31:
        acknowledge = 0  # reserved in 3.1, and not to be looked at
    if acknowledge > 1:
        raise malformed("MQTT-3.2.2-1", "reserved bits of the connect acknowledge flags are set")
    present = acknowledge == 1
    code = reader.u8()
    if version == V5:
        if code not in CONNACK_REASONS:
            raise violation("MQTT-3.2.2-8", f"CONNACK does not know the reason {code:#04x}")
        found = CONNACK_PROPERTIES.read(reader)
        reader.finish()
        if present and code:
            raise violation("MQTT-3.2.2-6", "session present in a refusal")
        return Connack(session_present=present, reason=Reason(code), **found)
    reader.finish()
    reason = connack_of_v3(code)
    if reason is None:
        raise violation("3.2.2.3 (3.1.1)", f"the return code {code} is reserved")
    if present and reason:
        raise violation("MQTT-3.2.2-4 (3.1.1)", "session present in a refusal")
    return Connack(session_present=present, reason=reason)


def encode_connack(packet: Connack, version: int) -> bytes:
    present = write_u8(packet.session_present)
    if version == V5:
        return frame(0x20, present, write_u8(packet.reason), CONNACK_PROPERTIES.write(packet))
    if version == V31:
        present = b"\x00"  # 3.1 has no session present: the byte is reserved
    return frame(0x20, present, write_u8(connack_v3_of(packet.reason)))
