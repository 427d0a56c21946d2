"""When to try again: exponential back-off with full jitter, and what the server asked for. Pure: the time and the
die's throw are handed in.

| state | a request comes | it gets an answer | it gets none | the server says: later |
|---|---|---|---|---|
| unknown | may go, alone | online | waiting | waiting |
| online | may go | online | waiting, once however many fail together | waiting |
| waiting | waits until `not_before`, then goes alone | online | waiting, for longer | waiting |
"""

from __future__ import annotations

from msgspec import Struct

MOST_DOUBLINGS = 32  # 2**32 seconds are more than any cap; a float would overflow after a thousand failures
SPREAD = 0.25  # of what the server asked for: those whom it asked at once must not come back at once


class Backoff(Struct, frozen=True):
    """Full jitter: anywhere between nothing (but `least`) and the ceiling, which doubles with each failure."""

    first: float = 1.0
    cap: float = 60.0
    least: float = 0.2

    def ceiling(self, failures: int) -> float:
        return min(self.cap, self.first * 2 ** min(failures - 1, MOST_DOUBLINGS)) if failures else 0.0

    def delay(self, failures: int, draw: float) -> float:
        """`draw` in [0, 1)."""
        return max(self.least, draw * self.ceiling(failures)) if failures else 0.0

    def after_asked(self, seconds: float, draw: float) -> float:
        """Not before what the server asked for, and spread out behind it."""
        return seconds + draw * max(1.0, SPREAD * seconds)


USUAL = Backoff()


class Reachability:
    """What is known about the way to the server."""

    def __init__(self, backoff: Backoff = USUAL) -> None:
        self._backoff = backoff
        self.online: bool | None = None
        self.failures = 0
        self.not_before = 0.0
        self.asked_until = 0.0
        """The server wants nothing before: what a person asks in between may go, and changes nothing about it."""
        self.turn = 0
        """Counts the changes of mind: a failure of a request that began in an earlier turn says nothing new."""

    def wait(self, now: float) -> float:
        """Seconds until a request may go."""
        return max(0.0, self.not_before - now, self.asked_until - now)

    @property
    def alone(self) -> bool:
        """Only one request may find out."""
        return self.online is not True

    def answered(self) -> None:
        if self.online is not True or self.failures:
            self.turn += 1
        self.online = True
        self.failures = 0
        self.not_before = 0.0

    def unanswered(self, now: float, draw: float, turn: int) -> None:
        if turn != self.turn:
            return
        self.turn += 1
        self.online = False
        self.failures += 1
        self.not_before = now + self._backoff.delay(self.failures, draw)

    def asked_to_wait(self, now: float, draw: float, turn: int, seconds: float | None) -> None:
        """The server is there (so we are online), but wants nothing for a while."""
        if turn != self.turn:
            return
        self.turn += 1
        self.online = True
        self.failures += 1
        self.not_before = now + self._backoff.delay(self.failures, draw)
        if seconds is not None:
            self.asked_until = now + self._backoff.after_asked(seconds, draw)

    def network_returned(self) -> None:
        """The system says that there is a network again: the next request may go at once."""
        self.turn += 1
        self.not_before = 0.0
