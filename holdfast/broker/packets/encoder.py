"""Packets to bytes, in the words of one protocol version, and within what the receiver can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.broker.packets.acknowledge import Puback, Pubcomp, Pubrec, Pubrel, encode_acknowledgement
from holdfast.broker.packets.connect import Connack, Connect, encode_connack, encode_connect
from holdfast.broker.packets.control import (
    Auth,
    Disconnect,
    Pingreq,
    Pingresp,
    encode_auth,
    encode_disconnect,
    encode_pingreq,
    encode_pingresp,
)
from holdfast.broker.packets.publish import Publish, encode_publish
from holdfast.broker.packets.subscribe import (
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    encode_suback,
    encode_subscribe,
    encode_unsuback,
    encode_unsubscribe,
)
from holdfast.broker.packets.union import Packet

_ENCODE: Final[dict[type[Packet], Callable[[Any, int], bytes]]] = {
    Connect: encode_connect,
    Connack: encode_connack,
    Publish: encode_publish,
    Puback: encode_acknowledgement,
    Pubrec: encode_acknowledgement,
    Pubrel: encode_acknowledgement,
    Pubcomp: encode_acknowledgement,
    Subscribe: encode_subscribe,
    Suback: encode_suback,
    Unsubscribe: encode_unsubscribe,
    Unsuback: encode_unsuback,
    Pingreq: encode_pingreq,
    Pingresp: encode_pingresp,
    Disconnect: encode_disconnect,
    Auth: encode_auth,
}


def encode(packet: Packet, version: int) -> bytes:
    """The bytes of a packet in version 3 (3.1), 4 (3.1.1) or 5; ValueError for what the wire cannot hold."""
    return _ENCODE[type(packet)](packet, version)


def encode_within(packet: Packet, version: int, maximum: int | None) -> bytes | None:
    """The bytes of a packet for a receiver with a maximum packet size, None when it cannot be made to fit.

    Reason string and user properties of an answer are left out before that [MQTT-3.2.2-19, MQTT-3.2.2-20
    and their like]; the user properties of a message are part of it and never are.
    """
    encoded = encode(packet, version)
    if maximum is None or len(encoded) <= maximum:
        return encoded
    if isinstance(packet, Connect | Publish | Subscribe | Unsubscribe | Pingreq | Pingresp):
        return None
    bare = encode(msgspec.structs.replace(packet, reason_string=None, user_properties=()), version)
    return bare if len(bare) <= maximum else None
