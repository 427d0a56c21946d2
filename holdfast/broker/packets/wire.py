"""The data types of MQTT (v5 section 1.5): integers, strings, binary data, variable byte integers.

Reading never looks past the packet it was given; writing refuses what the wire cannot hold.
It does not know what a packet is.
"""

from __future__ import annotations

from typing import Final

from holdfast.broker.packets.errors import malformed

MAX_VARINT: Final = 268_435_455
MAX_STRING: Final = 65_535
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(256))
_CUT: Final = "the packet ends inside a field"


class Reader:
    """A cursor over the body of one packet."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def u8(self) -> int:
        at = self.at
        if at >= self.end:
            raise malformed("2.1.4", _CUT)
        self.at = at + 1
        return self.data[at]

    def u16(self) -> int:
        at = self.at
        if at + 2 > self.end:
            raise malformed("1.5.2", _CUT)
        self.at = at + 2
        return self.data[at] << 8 | self.data[at + 1]

    def u32(self) -> int:
        at = self.at
        if at + 4 > self.end:
            raise malformed("1.5.3", _CUT)
        self.at = at + 4
        return int.from_bytes(self.data[at : at + 4], "big")

    def varint(self) -> int:
        """A variable byte integer inside a v5 packet: at most four bytes, as few as possible."""
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 21:
                raise malformed("1.5.5", "a variable byte integer is longer than four bytes")
        if byte == 0 and shift:
            raise malformed("MQTT-1.5.5-1", "a variable byte integer is longer than it needs to be")
        return value

    def binary(self) -> bytes:
        size = self.u16()
        at = self.at
        if at + size > self.end:
            raise malformed("1.5.6", _CUT)
        self.at = at + size
        return self.data[at : at + size]

    def string(self) -> str:
        return text(self.binary())

    def rest(self) -> bytes:
        at, self.at = self.at, self.end
        return self.data[at : self.end]

    def finish(self) -> None:
        if self.at != self.end:
            raise malformed("2.1.4", "the packet is longer than its content")


def text(raw: bytes) -> str:
    """A UTF-8 encoded string. Python's strict decoder refuses surrogates and keeps a leading U+FEFF."""
    try:
        decoded = raw.decode()
    except UnicodeDecodeError:
        raise malformed("MQTT-1.5.4-1", "a string is not well-formed UTF-8") from None
    if "\0" in decoded:
        raise malformed("MQTT-1.5.4-2", "a string contains U+0000")
    return decoded


def write_u8(value: int) -> bytes:
    return _ONE_BYTE[value]


def write_u16(value: int) -> bytes:
    return value.to_bytes(2, "big")


def write_u32(value: int) -> bytes:
    return value.to_bytes(4, "big")


def write_varint(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if value <= MAX_VARINT:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21))
    raise ValueError(f"{value} does not fit a variable byte integer")


def write_binary(value: bytes) -> bytes:
    size = len(value)
    if size > MAX_STRING:
        raise ValueError(f"{size} bytes do not fit a field of at most {MAX_STRING}")
    return size.to_bytes(2, "big") + value


def write_string(value: str) -> bytes:
    return write_binary(value.encode())


def frame(first: int, *parts: bytes) -> bytes:
    """A whole control packet: fixed header, remaining length, body."""
    body = b"".join(parts)
    return _ONE_BYTE[first] + write_varint(len(body)) + body
