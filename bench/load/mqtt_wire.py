"""MQTT 3.1.1 packets as the load generators write them: by hand, short, and of one length, so that they can be counted."""

from __future__ import annotations

CONNACK_SIZE = 4
SUBACK_SIZE = 5
PUBACK_SIZE = 4
DISCONNECT = b"\xe0\x00"
_MOST = 127  # one byte of remaining length: every packet has a header of two bytes


def _string(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(2, "big") + raw


def _frame(first: int, body: bytes) -> bytes:
    assert len(body) <= _MOST, "the load's packets are small"
    return bytes((first, len(body))) + body


def connect(client_id: str, *, clean: bool = True) -> bytes:
    return _frame(0x10, _string("MQTT") + bytes((4, 2 if clean else 0, 0, 0)) + _string(client_id))


def subscribe(topic_filter: str, qos: int) -> bytes:
    return _frame(0x82, b"\x00\x01" + _string(topic_filter) + bytes((qos,)))


def publish(topic: str, payload: bytes, qos: int = 0, packet_id: int = 1, *, retain: bool = False) -> bytes:
    identifier = packet_id.to_bytes(2, "big") if qos else b""
    return _frame(0x30 | qos << 1 | retain, _string(topic) + identifier + payload)


def size_of_publish(topic: str, payload: bytes, qos: int) -> int:
    return len(publish(topic, payload, qos))


def pubacks(data: bytes, at: int, size: int, count: int) -> bytes:
    """PUBACKs for `count` QoS 1 messages of `size` bytes each; `at` is the place of the identifier in each."""
    end = size * count
    acks = bytearray(PUBACK_SIZE * count)
    acks[0::4] = b"\x40" * count
    acks[1::4] = b"\x02" * count
    acks[2::4] = data[at:end:size]
    acks[3::4] = data[at + 1 : end : size]
    return bytes(acks)
