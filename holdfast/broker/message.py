"""One application message inside the broker: what was published, its encodings, and who waits for it to be safe."""

from __future__ import annotations

from typing import Protocol

from holdfast.broker.packets import MessageProperties, OutgoingMessage

SPARE = 32
"""Bytes that a message costs besides its topic and payload, as the caps count it."""


class Acknowledgement(Protocol):
    """Whoever published the message and waits for it to be safe."""

    def settle(self) -> None: ...
    def fail(self) -> None:
        """It may not be safe: the publisher has to send it again."""


class Message(OutgoingMessage):
    """`waiting` counts what still keeps its publisher's acknowledgement back: queues that hold it unwritten, the
    retained store, listeners. `rows` counts the queues that will write it, `id` is its place in the store once it
    has one of its own."""

    __slots__ = (
        "acknowledgement",
        "expires_ms",
        "id",
        "qos",
        "retain",
        "rows",
        "size",
        "stored_ms",
        "waiting",
    )

    def __init__(
        self,
        topic: str,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        properties: MessageProperties | None = None,
        expires_ms: int | None = None,
    ) -> None:
        super().__init__(topic, payload, properties)
        self.qos = qos
        self.retain = retain
        self.expires_ms = expires_ms
        self.size = len(payload) + len(topic) + SPARE
        self.waiting = 0
        self.rows = 0
        self.id = 0
        self.stored_ms = 0
        """When it was retained."""
        self.acknowledgement: Acknowledgement | None = None

    def settled(self) -> None:
        """One thing less to wait for."""
        self.waiting -= 1
        if not self.waiting and self.acknowledgement is not None:
            acknowledgement, self.acknowledgement = self.acknowledgement, None
            acknowledgement.settle()

    def failed(self) -> None:
        if self.acknowledgement is not None:
            acknowledgement, self.acknowledgement = self.acknowledgement, None
            acknowledgement.fail()

    def again(self) -> Message:
        """The same message with a fate of its own in the store."""
        return Message(self.topic, self.payload, self.qos, self.retain, self.properties, self.expires_ms)
