"""Bytes to packets: one decoder per connection, fed with whatever arrives, in pieces of any size.

It refuses what the standard refuses before it waits for more: a wrong first byte at once, a packet that is
too large when its length is known. So it never holds more than one packet of the permitted size, and never
looks at a byte of an unfinished packet twice. What a packet means, and whether now is the time for it, it
does not know; only that CONNECT comes first, once.

Design note. PUBLISH is read straight from the receive buffer and only topic and payload are copied; the
other packets go through one table from first byte to reader, which is also where reserved flags, wrong
directions and versions are refused. docs/rooms/broker-packets.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final

from holdfast.broker.packets.acknowledge import Puback, Pubcomp, Pubrec, Pubrel, read_acknowledgement
from holdfast.broker.packets.connect import V5, V31, V311, read_connack, read_connect, read_protocol_version
from holdfast.broker.packets.control import Pingreq, Pingresp, read_auth, read_disconnect
from holdfast.broker.packets.errors import ProtocolError, malformed, violation
from holdfast.broker.packets.publish import read_publish
from holdfast.broker.packets.reason import Reason
from holdfast.broker.packets.subscribe import read_suback, read_subscribe, read_unsuback, read_unsubscribe
from holdfast.broker.packets.union import Packet
from holdfast.broker.packets.wire import MAX_VARINT, Reader

LARGEST_PACKET: Final = MAX_VARINT + 5


class Side(Enum):
    """Who is reading: a server reads what clients send."""

    SERVER = "server"
    CLIENT = "client"


Read = Callable[[bytes, int, int], Packet]
"""Reads one packet's body between two places of the buffer."""

_HEADER: Final = 2


class Decoder:
    """`version` is None on a server until CONNECT has said it; `max_packet_size` may change between reads."""

    __slots__ = ("_need", "_padded", "_readers", "_rest", "_side", "failed", "max_packet_size", "version")

    def __init__(
        self, side: Side = Side.SERVER, version: int | None = None, max_packet_size: int = LARGEST_PACKET
    ) -> None:
        self.version = version
        self.max_packet_size = max_packet_size
        self.failed = False
        self._side = side
        self._readers = _readers_of(side, version) if version else (None,) * 256
        self._rest = bytearray()
        self._need = _HEADER
        self._padded = False

    @property
    def buffered(self) -> int:
        """How many bytes of an unfinished packet are held."""
        return len(self._rest)

    def receive_data(self, data: bytes | bytearray | memoryview) -> list[Packet]:
        """The packets that these bytes complete, in order.

        Raises ProtocolError, once, with the packets before the bad one in `packets`; whatever comes after
        it is dropped unread.
        """
        if self.failed:
            return []
        rest = self._rest
        if rest:
            if len(rest) + len(data) < self._need:
                rest += data
                return []
            data = b"".join((rest, data))
            rest.clear()
        elif type(data) is not bytes:
            data = bytes(data)
        packets: list[Packet] = []
        try:
            self._read(data, packets)
        except ProtocolError as error:
            self.failed = True
            error.packets = packets
            raise
        return packets

    def _read(self, data: bytes, packets: list[Packet]) -> None:
        at, size = 0, len(data)
        v5 = self.version == V5
        from_client = self._side is Side.SERVER
        readers, limit = self._readers, self.max_packet_size
        append = packets.append
        while at < size:
            first = data[at]
            read = readers[first]
            if read is None and not self._is_first_connect(first):
                raise self._refusal(first)
            body = at + 2
            if body > size:
                self._wait(data, at, 0)
                return
            length = data[at + 1]
            if length > 0x7F:
                header = self._long_length(data, at, size)
                if header is None:
                    self._wait(data, at, size - at + 1)
                    return
                length, body = header
            end = body + length
            if end - at > limit:
                raise ProtocolError(
                    Reason.PACKET_TOO_LARGE, "MQTT-3.2.2-15", f"a packet of {end - at} bytes is too large"
                )
            if end > size:
                self._wait(data, at, end - at)
                return
            if first & 0xF0 == 0x30:
                append(read_publish(data, first, body, end, v5, from_client))
            elif read is not None:
                append(read(data, body, end))
            else:
                append(self._read_first_connect(data, body, end))
                v5, readers = self.version == V5, self._readers
            at = end

    def _wait(self, data: bytes, at: int, need: int) -> None:
        """Keep the unfinished packet; `need` bytes of it are wanted before it is looked at again."""
        self._rest += memoryview(data)[at:]
        self._need = max(need, _HEADER)

    def _long_length(self, data: bytes, at: int, size: int) -> tuple[int, int] | None:
        """Remaining length and start of the body, None while the length itself is incomplete (2.1.4)."""
        value = shift = 0
        for place in range(at + 1, min(at + 5, size)):
            byte = data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0:
                    self._refuse_padding()
                return value, place + 1
            shift += 7
        if shift == 28:
            raise malformed("2.1.4", "the remaining length is longer than four bytes")
        return None

    def _refuse_padding(self) -> None:
        """5.0 wants the shortest form of a length; 3.1.1 does not say. The first CONNECT is judged later."""
        if self.version == V5:
            raise malformed("MQTT-1.5.5-1", "the remaining length is longer than it needs to be")
        self._padded = True

    def _is_first_connect(self, first: int) -> bool:
        return first == 0x10 and self.version is None and self._side is Side.SERVER

    def _read_first_connect(self, data: bytes, at: int, end: int) -> Packet:
        reader = Reader(data, at, end)
        self.version = version = read_protocol_version(reader)
        self._readers = _readers_of(self._side, version)
        if self._padded:
            self._refuse_padding()
        return read_connect(reader, version)

    def _refusal(self, first: int) -> ProtocolError:
        """Why no packet may begin with this byte, now, from this side."""
        kind = first >> 4
        if self.version is None:
            if kind == 1:
                return malformed("MQTT-2.1.3-1", "reserved flags of CONNECT are set")
            return violation("MQTT-3.1.0-1", "the first packet is not CONNECT")
        if kind == 0 or (kind == 15 and self.version != V5):
            return malformed("2.1.2", f"packet type {kind} is reserved")
        if kind == 1 and self._side is Side.SERVER:
            return violation("MQTT-3.1.0-2", "a second CONNECT")
        if kind == 3:
            if first & 0x06 == 0x06:
                return malformed("MQTT-3.3.1-4", "PUBLISH has QoS 3")
            return malformed("MQTT-3.3.1-2", "DUP is set at QoS 0")
        if kind not in {known >> 4 for known, read in enumerate(self._readers) if read is not None}:
            return violation("2.1.2", f"packet type {kind} is not sent in this direction")
        return malformed("MQTT-2.1.3-1", "reserved flags of the fixed header are set")


def _build(side: Side, version: int) -> tuple[Read | None, ...]:
    """Which reader a first byte leads to, None where no packet may begin with it."""
    v5 = version == V5
    from_client = side is Side.SERVER
    readers: list[Read | None] = [None] * 256
    for flags in (0, 1, 2, 3, 4, 5, 10, 11, 12, 13):  # not QoS 3, not DUP at QoS 0
        first = 0x30 | flags
        readers[first] = partial(_publish, first, v5, from_client)
    readers[0x40] = partial(read_acknowledgement, Puback, v5)
    readers[0x50] = partial(read_acknowledgement, Pubrec, v5)
    readers[0x62] = partial(read_acknowledgement, Pubrel, v5)
    readers[0x70] = partial(read_acknowledgement, Pubcomp, v5)
    if from_client:
        readers[0x82] = lambda data, at, end: read_subscribe(Reader(data, at, end), v5)
        readers[0xA2] = lambda data, at, end: read_unsubscribe(Reader(data, at, end), v5)
        readers[0xC0] = lambda data, at, end: _empty(Pingreq(), Reader(data, at, end))
    else:
        readers[0x20] = lambda data, at, end: read_connack(Reader(data, at, end), version)
        readers[0x90] = lambda data, at, end: read_suback(Reader(data, at, end), v5)
        readers[0xB0] = lambda data, at, end: read_unsuback(Reader(data, at, end), v5)
        readers[0xD0] = lambda data, at, end: _empty(Pingresp(), Reader(data, at, end))
    if from_client or v5:
        readers[0xE0] = lambda data, at, end: read_disconnect(Reader(data, at, end), v5, from_client)
    if v5:
        readers[0xF0] = lambda data, at, end: read_auth(Reader(data, at, end), from_client)
    if version == V31:  # 3.1 sets DUP when it sends one of these again
        for first in (0x62, 0x82, 0xA2):
            readers[first | 0x08] = readers[first]
    return tuple(readers)


def _publish(first: int, v5: bool, from_client: bool, data: bytes, at: int, end: int) -> Packet:
    return read_publish(data, first, at, end, v5, from_client)


def _empty(packet: Packet, reader: Reader) -> Packet:
    reader.finish()
    return packet


_READERS: Final = {(side, version): _build(side, version) for side in Side for version in (V31, V311, V5)}


def _readers_of(side: Side, version: int) -> tuple[Read | None, ...]:
    return _READERS[side, version]
