"""What a v5 application message carries besides topic and payload (3.3.2.3), on its way or as a will.

These properties travel unaltered from publisher to subscriber; what belongs to one hop alone (topic alias,
subscription identifiers) is a field of PUBLISH.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.properties import PropertySet


class MessageProperties(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    payload_format: int | None = None
    message_expiry: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


MESSAGE_FIELDS: Final = (
    known.PAYLOAD_FORMAT,
    known.MESSAGE_EXPIRY,
    known.CONTENT_TYPE,
    known.RESPONSE_TOPIC,
    known.CORRELATION_DATA,
    known.USER_PROPERTIES,
)
MESSAGE_PROPERTIES: Final = PropertySet(MESSAGE_FIELDS, MessageProperties)
