"""CALL_*: signalling between two people."""

from __future__ import annotations

from holdfast.chat.frames import Frame
from holdfast.chat.gateway.connection import Connection
from holdfast.chat.reasons import Reason, Refused


class Calling:
    async def signal(self, connection: Connection, frame: Frame) -> None:
        raise Refused(Reason.NOT_IMPLEMENTED)
