"""The right reaction to each reason, and how fast may be sent. Pure: the time is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto


class Ending(Enum):
    """What to do after a connection has ended."""

    AGAIN = auto()
    """Reconnect, after the back-off."""
    REFRESH = auto()
    """Another token first; if there is none any more, the account says so."""
    SLOWER = auto()
    """Reconnect, after a good while."""
    STOP = auto()
    """Somebody newer is connected: reconnecting would only throw him out again."""


ENDINGS: Mapping[str, Ending] = {
    "missing_token": Ending.REFRESH,
    "invalid_token": Ending.REFRESH,
    "session_invalid": Ending.REFRESH,
    "token_expired": Ending.REFRESH,
    "reauth_uid_mismatch": Ending.REFRESH,
    "kicked": Ending.STOP,
    "unauthorized": Ending.AGAIN,
    "auth_timeout": Ending.AGAIN,
    "too_many_requests": Ending.SLOWER,
}
"""Reasons that close the connection."""


class Fate(Enum):
    """What becomes of a message that was answered with a reason."""

    LATER = auto()
    REFUSED = auto()


_LATER = frozenset({"server_busy", "internal_error"})


def fate(reason: str) -> Fate:
    """Everything but a server in trouble is final: the same message would get the same answer."""
    return Fate.LATER if reason in _LATER else Fate.REFUSED


def contiguous(reached: int, stored: list[int]) -> int:
    """As far as nothing is missing; `stored` lies above `reached`, ascending."""
    for seq in stored:
        if seq > reached + 1:
            return reached
        reached = max(reached, seq)
    return reached


class Pace:
    """Stays below what the server takes from a user: 30 frames a second, 60 at once."""

    def __init__(self, per_second: float = 20.0, most: float = 40.0) -> None:
        self._per_second = per_second
        self._most = most
        self._left = most
        self._at = 0.0

    def wait(self, now: float) -> float:
        """Seconds until one more may go; 0: it goes now, and is counted."""
        self._left = min(self._most, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        if self._left >= 1 - 1e-9:  # the waited time may have been rounded
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._per_second
