"""How many may connect, how many sessions a user may leave here, how fast one may send. Who is over a rate is read
later, not turned away."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.broker.packets import Packet, Publish, Reason

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker
    from holdfast.broker.peer import Peer


class Meter:
    """One client's rate: what it has sent above it is waited off before more is read."""

    __slots__ = ("_bytes", "_debt_bytes", "_debt_messages", "_limits", "_messages", "_since")

    def __init__(self, limits: Limits, messages: int, bytes_: int, now: float) -> None:
        self._limits = limits
        self._messages = messages
        self._bytes = bytes_
        self._debt_messages = 0.0
        self._debt_bytes = 0.0
        self._since = now

    def read(self, peer: Peer, data: bytes, packets: list[Packet]) -> None:
        now = self._limits.now()
        passed, self._since = now - self._since, now
        pause = 0.0
        if self._messages:
            came = sum(1 for packet in packets if type(packet) is Publish)
            self._debt_messages = max(0.0, self._debt_messages - passed * self._messages) + came
            pause = (self._debt_messages - self._messages) / self._messages
        if self._bytes:
            self._debt_bytes = max(0.0, self._debt_bytes - passed * self._bytes) + len(data)
            pause = max(pause, (self._debt_bytes - self._bytes) / self._bytes)
        if pause > 0:
            self._limits.pause(peer, pause)


class Limits:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._settings = broker.settings
        self._addresses: Counter[str] = Counter()
        self._lasting: Counter[str] = Counter()

    def now(self) -> float:
        return self._broker.clock.monotonic()

    def meter(self) -> Meter | None:
        settings = self._settings
        if not (settings.message_rate or settings.byte_rate):
            return None
        return Meter(self, settings.message_rate, settings.byte_rate, self.now())

    def pause(self, peer: Peer, seconds: float) -> None:
        peer.hold_for_rate()
        asyncio.get_running_loop().call_later(seconds, peer.unhold_for_rate)

    def enter(self, address: str, connections: int) -> Reason | None:
        """Counts a connection; why its CONNECT is refused, if it is."""
        self._addresses[address] += 1
        most, most_of_one = self._settings.max_connections, self._settings.max_connections_per_address
        if (most and connections > most) or (most_of_one and self._addresses[address] > most_of_one):
            return Reason.QUOTA_EXCEEDED
        return None

    def leave(self, address: str) -> None:
        self._addresses[address] -= 1
        if self._addresses[address] <= 0:
            del self._addresses[address]

    # -- sessions that outlive their connections

    def may_keep(self, user: str) -> bool:
        """Whether another session of this user is taken; those that are there stay, however many they are."""
        most = self._settings.max_sessions_per_user
        return not most or self._lasting[user] < most

    def keeps(self, user: str) -> None:
        self._lasting[user] += 1

    def ended(self, user: str) -> None:
        self._lasting[user] -= 1
        if self._lasting[user] <= 0:
            del self._lasting[user]
