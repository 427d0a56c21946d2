"""The one clock. Whatever needs the time is given a `Clock`, so that a test can move it."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time, milliseconds since 1970 (UTC). Names moments; never decides what a reader has seen."""

    def monotonic(self) -> float:
        """Seconds that only go forward: for timeouts and durations."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)
        self._monotonic += seconds

    def set_wall(self, now_ms: int) -> None:
        """The operator sets the wall clock, perhaps back; monotonic time does not notice."""
        self._now_ms = now_ms


def rfc3339(ms: int) -> str:
    """`2026-02-18T06:00:00.123Z`, the spelling of every time on the wire."""
    seconds, millis = divmod(ms, 1000)
    return f"{_second(seconds)}.{millis:03d}Z"


@lru_cache(maxsize=4_096)  # what lies together was made together
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
