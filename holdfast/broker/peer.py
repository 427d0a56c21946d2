"""One connection: bytes in from a door, bytes out to its transport. What they mean is decided elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.broker.transport import Transport

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker


class Peer:
    """A door calls these four, in the loop's thread; none of them raises."""

    def __init__(self, broker: Broker, transport: Transport) -> None:
        self.broker = broker
        self.transport = transport

    def receive_data(self, data: bytes) -> None:
        """Whatever arrived, in pieces of any size. After `close` or `abort` of the transport it does nothing."""
        raise NotImplementedError

    def pause_writing(self) -> None:
        """The transport's buffer is above its mark (`broker.high_water`)."""
        raise NotImplementedError

    def resume_writing(self) -> None:
        raise NotImplementedError

    def connection_lost(self) -> None:
        """Once, also after our own `close` or `abort`."""
        raise NotImplementedError
