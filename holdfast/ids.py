"""The two kinds of names we make: Xids for what clients may also name, 63-bit numbers for what only we name.

Both begin with the time, so that new rows lie together in an index; neither orders anything else.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from itertools import count

from holdfast.clock import Clock

_ALPHABET = "0123456789abcdefghijklmnopqrstuv"
_XID = re.compile(r"[0-9a-v]{20}\Z")

_EPOCH_MS = 1_704_067_200_000  # 2024-01-01: 41 bits of milliseconds from here last until 2093
_COUNTER_BITS = 22
MAX_ID = 2**63 - 1


def is_xid(text: str) -> bool:
    return _XID.match(text) is not None


class XidMaker:
    """Xids as the apps make them: seconds, machine, process, counter, in 20 digits of base32hex."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._middle = secrets.token_bytes(3) + (os.getpid() & 0xFFFF).to_bytes(2)
        self._counter = count(secrets.randbits(24))

    def __call__(self) -> str:
        seconds = (self._clock.now_ms() // 1000) & 0xFFFFFFFF
        raw = seconds.to_bytes(4) + self._middle + (next(self._counter) & 0xFFFFFF).to_bytes(3)
        bits = int.from_bytes(raw) << 4
        return "".join([_ALPHABET[(bits >> shift) & 31] for shift in range(95, -1, -5)])


class IdMaker:
    """Positive 63-bit numbers: 41 bits of time, then a counter that starts each millisecond at random.

    Within a process they strictly increase, whatever the clock does. Two processes on one database meet only
    if they draw the same 22 bits in the same millisecond; the primary key catches that and the write fails.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = 0

    def above(self, floor: int) -> None:
        """From here on only numbers above `floor`: what was given out before, should the clock have been set back."""
        with self._lock:
            self._last = max(self._last, floor)

    def __call__(self) -> int:
        floor = (self._clock.now_ms() - _EPOCH_MS) << _COUNTER_BITS
        with self._lock:
            if floor > self._last:
                # the upper half of the counter stays free, so that a burst does not run into the next millisecond
                self._last = floor + secrets.randbits(_COUNTER_BITS - 1)
            else:
                self._last += 1
            return self._last
