"""The named table of wire examples: what stands on the wire beside the packet it is, in every version.

The codec's tests and the server's read the same table; its rows are in `wire_good.py` and `wire_bad.py`.
Good ones are canonical: decoding gives the packet, encoding the packet gives the bytes. Bad ones say with
which reason and for which clause they are refused. Bytes are written in hex, a space between fields; what
stands between quotes is a string with its length before it.
"""

import re
from typing import NamedTuple

from holdfast.broker.packets import (
    V5,
    V31,
    V311,
    Packet,
    Reason,
    Side,
)

SERVER, CLIENT = Side.SERVER, Side.CLIENT
ALL = (V31, V311, V5)
V3 = (V31, V311)


def wire(written: str) -> bytes:
    """`10 0c "MQTT" 04`: hex bytes, and quoted text as a string with its length before it."""
    out = b""
    for text, hexed in re.findall(r'"([^"]*)"|([0-9a-fA-F]+)', written):
        out += bytes.fromhex(hexed) if hexed else len(text.encode()).to_bytes(2, "big") + text.encode()
    return out


class Good(NamedTuple):
    """`reader` is the side that receives it."""

    name: str
    version: int
    reader: Side
    data: bytes
    packet: Packet

    @property
    def label(self) -> str:
        return f"{self.name} (v{self.version})"


class Bad(NamedTuple):
    name: str
    version: int
    reader: Side
    data: bytes
    reason: Reason
    clause: str

    @property
    def label(self) -> str:
        return f"{self.name} (v{self.version})"


GOOD: list[Good] = []
BAD: list[Bad] = []


def good(name: str, versions: tuple[int, ...], reader: Side, written: str, packet: Packet) -> None:
    GOOD.extend(Good(name, version, reader, wire(written), packet) for version in versions)


def both(name: str, versions: tuple[int, ...], written: str, packet: Packet) -> None:
    good(f"{name} to the server", versions, SERVER, written, packet)
    good(f"{name} to the client", versions, CLIENT, written, packet)


def malformed(name: str, versions: tuple[int, ...], reader: Side, written: str, clause: str) -> None:
    refused(name, versions, reader, written, Reason.MALFORMED_PACKET, clause)


def violation(name: str, versions: tuple[int, ...], reader: Side, written: str, clause: str) -> None:
    refused(name, versions, reader, written, Reason.PROTOCOL_ERROR, clause)


def refused(
    name: str, versions: tuple[int, ...], reader: Side, written: str, reason: Reason, clause: str
) -> None:
    BAD.extend(Bad(name, version, reader, wire(written), reason, clause) for version in versions)
