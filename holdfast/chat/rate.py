"""How many frames are taken: a bucket that refills evenly. Pure; the time is handed in."""

from __future__ import annotations


class Bucket:
    __slots__ = ("_at", "_left", "_most", "_per_second")

    def __init__(self, per_second: float, most: float, now: float) -> None:
        self._per_second = per_second
        self._most = most
        self._left = most
        self._at = now

    def spend(self, now: float) -> bool:
        """Takes one; False when there is none."""
        left = min(self._most, self._left + (now - self._at) * self._per_second)
        self._at = now
        if left < 1:
            self._left = left
            return False
        self._left = left - 1
        return True

    def is_full(self, now: float) -> bool:
        return self._left + (now - self._at) * self._per_second >= self._most
