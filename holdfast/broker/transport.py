"""The one thing a peer knows of the network: where its bytes go. TCP, TLS, WebSocket and tests bring one each.

A door calls `peer.receive_data(data)`, `peer.pause_writing()`, `peer.resume_writing()`, `peer.connection_lost()`.
"""

from __future__ import annotations

from typing import Protocol


class Transport(Protocol):
    @property
    def address(self) -> str:
        """The client's address without its port, for limits, logs and `Login`."""

    @property
    def certificate_name(self) -> str | None:
        """The common name of a verified client certificate."""

    def write(self, data: bytes) -> None:
        """Never blocks; what the network does not take at once is buffered and counted by `unsent`."""

    def unsent(self) -> int:
        """Bytes that wait in the write buffer: the real one."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def close(self) -> None:
        """Sends what is buffered, then closes."""

    def abort(self) -> None:
        """Closes at once."""
