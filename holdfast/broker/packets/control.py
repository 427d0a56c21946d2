"""PINGREQ, PINGRESP, DISCONNECT, AUTH (3.12 to 3.15): the packets about the connection itself."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.errors import violation
from holdfast.broker.packets.properties import PropertySet
from holdfast.broker.packets.reason import (
    CLIENT_AUTH_REASONS,
    CLIENT_DISCONNECT_REASONS,
    SERVER_AUTH_REASONS,
    SERVER_DISCONNECT_REASONS,
    Reason,
)
from holdfast.broker.packets.wire import Reader, frame, write_u8

PINGREQ_FRAME: Final = b"\xc0\x00"
PINGRESP_FRAME: Final = b"\xd0\x00"


class Pingreq(msgspec.Struct, frozen=True):
    pass


class Pingresp(msgspec.Struct, frozen=True):
    pass


class Disconnect(msgspec.Struct, frozen=True, kw_only=True):
    reason: int = Reason.SUCCESS
    session_expiry: int | None = None
    reason_string: str | None = None
    server_reference: str | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


class Auth(msgspec.Struct, frozen=True, kw_only=True):
    reason: int = Reason.SUCCESS
    authentication_method: str | None = None
    authentication_data: bytes | None = None
    reason_string: str | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


DISCONNECT_PROPERTIES: Final = PropertySet(
    (known.SESSION_EXPIRY, known.REASON_STRING, known.SERVER_REFERENCE, known.USER_PROPERTIES), Disconnect
)
AUTH_PROPERTIES: Final = PropertySet(
    (
        known.AUTHENTICATION_METHOD,
        known.AUTHENTICATION_DATA,
        known.REASON_STRING,
        known.USER_PROPERTIES,
    ),
    Auth,
)


def read_disconnect(reader: Reader, v5: bool, from_client: bool) -> Disconnect:
    if reader.at == reader.end:
        return Disconnect()
    if not v5:
        reader.finish()
    reason = reader.u8()
    if reason not in (CLIENT_DISCONNECT_REASONS if from_client else SERVER_DISCONNECT_REASONS):
        raise violation("MQTT-3.14.2-1", f"DISCONNECT from this side does not know the reason {reason:#04x}")
    found = DISCONNECT_PROPERTIES.read(reader) if reader.at < reader.end else {}
    reader.finish()
    if not from_client and "session_expiry" in found:
        raise violation("MQTT-3.14.2-2", "a server sent a session expiry interval in DISCONNECT")
    return Disconnect(reason=Reason(reason), **found)


def encode_disconnect(packet: Disconnect, version: int) -> bytes:
    if version != 5:
        return b"\xe0\x00"
    properties = DISCONNECT_PROPERTIES.fields(packet)
    if properties:
        return frame(0xE0, write_u8(packet.reason), DISCONNECT_PROPERTIES.write(packet))
    return frame(0xE0, write_u8(packet.reason)) if packet.reason else b"\xe0\x00"


def read_auth(reader: Reader, from_client: bool) -> Auth:
    if reader.at == reader.end:
        reason, found = 0, {}
    else:
        reason = reader.u8()
        found = AUTH_PROPERTIES.read(reader) if reader.at < reader.end else {}
        reader.finish()
    if reason not in (CLIENT_AUTH_REASONS if from_client else SERVER_AUTH_REASONS):
        raise violation("MQTT-3.15.2-1", f"AUTH from this side does not know the reason {reason:#04x}")
    if reason and "authentication_method" not in found:
        raise violation("3.15.2.2.2", "AUTH without an authentication method")
    return Auth(reason=Reason(reason), **found)


def encode_auth(packet: Auth, version: int) -> bytes:
    if version != 5:
        raise ValueError("AUTH exists in MQTT 5.0 only")
    properties = AUTH_PROPERTIES.fields(packet)
    if properties or packet.reason:
        return frame(0xF0, write_u8(packet.reason), AUTH_PROPERTIES.write(packet))
    return b"\xf0\x00"


def encode_pingreq(packet: Pingreq, version: int) -> bytes:
    return PINGREQ_FRAME


def encode_pingresp(packet: Pingresp, version: int) -> bytes:
    return PINGRESP_FRAME
