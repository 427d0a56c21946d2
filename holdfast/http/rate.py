"""How many requests a minute: one bucket per user (or address) and class of routes, refilled evenly.

In memory and per process: it protects the server, it is not a quota anyone pays for. The number of buckets is
bounded; a bucket that is full again is forgotten.
"""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.errors import TooManyRequests

MOST_BUCKETS = 100_000


class RateLimit:
    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._most = float(per_minute)
        self._per_second = per_minute / 60
        self._clock = clock
        self._buckets: dict[object, tuple[float, float]] = {}

    def spend(self, who: object) -> None:
        """Takes one request from `who`, or raises with the seconds to wait."""
        now = self._clock.monotonic()
        left, then = self._buckets.get(who, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_second)
        if left < 1:
            raise TooManyRequests(retry_after=(1 - left) / self._per_second)
        if len(self._buckets) >= MOST_BUCKETS and who not in self._buckets:
            self._forget(now)
        self._buckets[who] = (left - 1, now)

    def _forget(self, now: float) -> None:
        """Buckets that are full again say nothing; if all are in use, the oldest half goes."""
        full = [
            who
            for who, (left, then) in self._buckets.items()
            if left + (now - then) * self._per_second >= self._most
        ]
        for who in full or list(self._buckets)[: MOST_BUCKETS // 2]:
            del self._buckets[who]
