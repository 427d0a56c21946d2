"""The one error of the codec: what a peer did wrong, as the reason code to send and the clause it broke."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.packets.reason import Reason

if TYPE_CHECKING:
    from holdfast.broker.packets.union import Packet


class ProtocolError(Exception):
    """The peer sent bytes that the standard does not allow; the connection cannot go on.

    `reason` is the v5 code for CONNACK or DISCONNECT, `clause` the statement that was broken
    (`MQTT-1.5.4-2`, or a section number where the standard numbers no statement), `packets` what was
    decoded before it from the same bytes: those are good and are handled first.
    """

    def __init__(self, reason: Reason, clause: str, message: str) -> None:
        super().__init__(f"{message} [{clause}]")
        self.reason = reason
        self.clause = clause
        self.message = message
        self.packets: list[Packet] = []


def malformed(clause: str, message: str) -> ProtocolError:
    """Bytes that cannot be parsed (v5 section 1.2, "Malformed Packet")."""
    return ProtocolError(Reason.MALFORMED_PACKET, clause, message)


def violation(clause: str, message: str) -> ProtocolError:
    """Bytes that parse, and say what the protocol does not allow (v5 section 1.2, "Protocol Error")."""
    return ProtocolError(Reason.PROTOCOL_ERROR, clause, message)
