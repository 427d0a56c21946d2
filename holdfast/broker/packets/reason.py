"""MQTT 5.0 reason codes (section 2.4): the broker speaks them inside, for every version.

The codec translates to the few return codes of 3.1 and 3.1.1 at the wire. It knows which codes each packet
may carry and which side may send them; why one is chosen is the session's business.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Reason(IntEnum):
    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_MATCHING_SUBSCRIBERS = 0x10
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    REAUTHENTICATE = 0x19
    UNSPECIFIED = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_ID_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_ID_IN_USE = 0x91
    PACKET_ID_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2


FAILURE: Final = 0x80
"""Codes from here on say that it did not work (2.4); a v3.1.1 SUBACK knows only this one."""

CONNACK_REASONS: Final = frozenset(
    {0x00, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F}
)
PUBLISH_ACK_REASONS: Final = frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99})
RELEASE_REASONS: Final = frozenset({0x00, 0x92})
SUBACK_REASONS: Final = frozenset({0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2})
UNSUBACK_REASONS: Final = frozenset({0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91})
CLIENT_DISCONNECT_REASONS: Final = frozenset(
    {0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99}
)
SERVER_DISCONNECT_REASONS: Final = frozenset(
    {0x00, *range(0x80, 0x84), 0x87, 0x89, 0x8B, *range(0x8D, 0x91), *range(0x93, 0xA3)}
)
CLIENT_AUTH_REASONS: Final = frozenset({0x18, 0x19})
SERVER_AUTH_REASONS: Final = frozenset({0x00, 0x18})

_CONNACK_V3_OF: Final = {
    Reason.SUCCESS: 0,
    Reason.UNSUPPORTED_PROTOCOL_VERSION: 1,
    Reason.CLIENT_ID_NOT_VALID: 2,
    Reason.BAD_USER_NAME_OR_PASSWORD: 4,
    Reason.BAD_AUTHENTICATION_METHOD: 4,
    Reason.NOT_AUTHORIZED: 5,
    Reason.BANNED: 5,
}
_CONNACK_OF_V3: Final = (
    Reason.SUCCESS,
    Reason.UNSUPPORTED_PROTOCOL_VERSION,
    Reason.CLIENT_ID_NOT_VALID,
    Reason.SERVER_UNAVAILABLE,
    Reason.BAD_USER_NAME_OR_PASSWORD,
    Reason.NOT_AUTHORIZED,
)
_SERVER_UNAVAILABLE_V3: Final = 3


def connack_v3_of(reason: int) -> int:
    """The 3.1.1 return code nearest to a reason; what v3 has no word for is "server unavailable"."""
    return _CONNACK_V3_OF.get(Reason(reason), _SERVER_UNAVAILABLE_V3)


def connack_of_v3(code: int) -> Reason | None:
    """The reason that a 3.1.1 return code stands for, None for a reserved one."""
    return _CONNACK_OF_V3[code] if code < len(_CONNACK_OF_V3) else None
