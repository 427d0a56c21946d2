"""QoS 2 messages from the client: the packet ids that arrived and are not released (4.3.3)."""

from __future__ import annotations


class Incoming:
    __slots__ = ("_ids",)

    def __init__(self, ids: set[int] | None = None) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids) if self._ids else 0

    def __contains__(self, packet_id: int) -> bool:
        return self._ids is not None and packet_id in self._ids

    def receive(self, packet_id: int) -> bool:
        """False when the message has arrived before and must not be routed again [MQTT-4.3.3-10]."""
        if self._ids is None:
            self._ids = set()
        if packet_id in self._ids:
            return False
        self._ids.add(packet_id)
        return True

    def release(self, packet_id: int) -> bool:
        """False when the id is not known (0x92)."""
        if self._ids is None or packet_id not in self._ids:
            return False
        self._ids.remove(packet_id)
        return True
