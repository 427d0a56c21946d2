"""One application message on its way to many subscribers, encoded once per shape of PUBLISH.

Two subscribers get the same bytes when version, QoS, retain, DUP, alias and subscription identifiers agree;
at QoS 1 and 2 all but the two bytes of the packet identifier. It does not know who the subscribers are.
"""

from __future__ import annotations

from functools import lru_cache

from holdfast.broker.packets import properties as known
from holdfast.broker.packets.message import MESSAGE_PROPERTIES, MessageProperties
from holdfast.broker.packets.properties import NONE
from holdfast.broker.packets.wire import write_string, write_u8, write_u16, write_varint

_V5 = 5
_EXPIRY = known.MESSAGE_EXPIRY
_LONG = 0x80
"""From here on a length needs more than one byte."""
_ALIAS = write_u8(known.TOPIC_ALIAS.id)
_SUBSCRIPTION_ID = write_u8(known.SUBSCRIPTION_IDS.id)

_REMEMBERED = 200
"""Characters of the longest topic whose bytes are remembered."""
_written = lru_cache(maxsize=4_096)(write_string)
_Shape = tuple[bool, int, bool, bool, int, bool, tuple[int, ...]]


class OutgoingMessage:
    """A message and the encodings of it that were asked for so far.

    `message_expiry` is written as it stands in `properties`: make a new OutgoingMessage when time has
    passed (a queued message, a retained one), share one among those who get it now.
    """

    __slots__ = (
        "_frames",
        "_message_fields",
        "_parts",
        "_plain",
        "_plain5",
        "_topic",
        "payload",
        "properties",
        "topic",
    )

    def __init__(self, topic: str, payload: bytes, properties: MessageProperties | None = None) -> None:
        self.topic = topic
        self.payload = payload
        self.properties = properties
        self._topic = _written(topic) if len(topic) <= _REMEMBERED else write_string(topic)
        self._plain: tuple[int, bytes, bytes] | None = None
        self._plain5: tuple[int, bytes, bytes] | None = None
        self._message_fields: bytes | None = None
        self._frames: dict[tuple[bool, bool], bytes] | None = None
        self._parts: dict[_Shape, tuple[bytes, bytes]] | None = None

    def frame(self, version: int, retain: bool = False) -> bytes:
        """The whole PUBLISH at QoS 0 without alias and identifiers: the same object for every subscriber."""
        key = (version == _V5, retain)
        if self._frames is None:
            self._frames = {}
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = b"".join(self.parts(version, 0, retain))
        return found

    def plain(self, version: int, qos: int, packet_id: bytes) -> bytes:
        """The whole PUBLISH at QoS 1 or 2 as most clients get it: no flags, no alias, no identifiers."""
        v5 = version == _V5
        known = self._plain5 if v5 else self._plain
        if known is None or known[0] != qos:
            known = (qos, *self._encode(v5, qos, False, False, 0, True, ()))
            if v5:
                self._plain5 = known
            else:
                self._plain = known
        return known[1] + packet_id + known[2]

    def once(self, version: int, first: int, packet_id: bytes = b"") -> bytes:
        """The whole PUBLISH with this first byte, not remembered: of a message that few will get in this shape."""
        tail = self._properties(0, ()) + self.payload if version == _V5 else self.payload
        size = len(self._topic) + len(packet_id) + len(tail)
        head = bytes((first, size)) if size < _LONG else write_u8(first) + write_varint(size)
        return head + self._topic + packet_id + tail

    def parts(
        self,
        version: int,
        qos: int,
        retain: bool = False,
        *,
        dup: bool = False,
        topic_alias: int = 0,
        with_topic: bool = True,
        subscription_ids: tuple[int, ...] = (),
    ) -> tuple[bytes, bytes]:
        """What stands before and behind the packet identifier (two bytes at QoS 1 and 2, none at QoS 0).

        `with_topic=False` leaves the topic to an alias that the receiver has been told before.
        """
        key = (version == _V5, qos, retain, dup, topic_alias, with_topic, subscription_ids)
        if self._parts is None:
            self._parts = {}
        found = self._parts.get(key)
        if found is None:
            found = self._parts[key] = self._encode(*key)
        return found

    def _encode(
        self,
        v5: bool,
        qos: int,
        retain: bool,
        dup: bool,
        topic_alias: int,
        with_topic: bool,
        subscription_ids: tuple[int, ...],
    ) -> tuple[bytes, bytes]:
        topic = self._topic if with_topic else b"\x00\x00"
        tail = self.payload
        if v5:
            tail = self._properties(topic_alias, subscription_ids) + tail
        size = len(topic) + len(tail) + (2 if qos else 0)
        first = 0x30 | dup << 3 | qos << 1 | retain
        return write_u8(first) + write_varint(size) + topic, tail

    def _properties(self, topic_alias: int, subscription_ids: tuple[int, ...]) -> bytes:
        fields = self._message_fields
        if fields is None:
            fields = b"" if self.properties is None else MESSAGE_PROPERTIES.fields(self.properties)
            self._message_fields = fields
        if topic_alias:
            fields = _ALIAS + write_u16(topic_alias) + fields
        for identifier in subscription_ids:
            fields += _SUBSCRIPTION_ID + write_varint(identifier)
        return write_varint(len(fields)) + fields if fields else NONE
