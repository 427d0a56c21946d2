"""How often a password may be tried.

| what is counted, over the last minute | at most | against |
|---|---|---|
| failures for one name from one address | `auth.login_tries` (5) | guessing one user's password |
| failures from one network | 20 times that | guessing with many names from one place |
| failures for one name | 20 times that | guessing with many addresses; places where this name has logged in stay open |

An address is an IPv4 address or an IPv6 /64 (whoever has one address of it has all); a network is an IPv4 address
or an IPv6 /48. A try counts from its beginning, so that a hundred at once are not a hundred tries; one that
succeeds is taken back, and resets none of the others. What is remembered is bounded: a refused try leaves no trace,
each counted one has cost a hash, a minute has few of those, and beyond `limit` the oldest is forgotten.

In memory and per process: a restart forgives, and several processes allow as many times more.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address, ip_network

from holdfast.clock import Clock
from holdfast.errors import TooManyLogins

WINDOW = 60.0
WIDE = 20
KNOWN_PLACES = 20_000

Key = tuple[str, str]


class Try:
    """One attempt to log in, counted as a failure until it turns out otherwise."""

    def __init__(self, throttle: Throttle, keys: tuple[Key, ...], name: str, place: str, at: float) -> None:
        self._throttle = throttle
        self._keys = keys
        self._name = name
        self._place = place
        self._at = at

    def succeeded(self) -> None:
        self._throttle.remember_place(self._name, self._place)
        self.never_mind()

    def never_mind(self) -> None:
        """It came to no verdict, or to a good one: it does not count."""
        self._throttle.take_back(self._keys, self._at)
        self._keys = ()


class Throttle:
    def __init__(self, clock: Clock, tries: int, *, limit: int = 50_000) -> None:
        self._clock = clock
        self._tries = tries
        self._limit = limit
        self._failures: OrderedDict[Key, list[float]] = OrderedDict()  # oldest last failure first
        self._places: OrderedDict[Key, None] = OrderedDict()

    def begin(self, name_key: str, address: str) -> Try:
        """Counts a try; `TooManyLogins` when there were enough."""
        now = self._clock.monotonic()
        self._forget(now - WINDOW)
        place, network = place_of(address)
        bounds = {
            (name_key, f"at {place}"): self._tries,
            ("", f"in {network}"): self._tries * WIDE,
            (name_key, ""): self._tries * WIDE,
        }
        waits = [self._wait(key, bound, now) for key, bound in bounds.items()]
        if (name_key, place) in self._places:
            waits.pop()
        if (wait := max(waits)) > 0:
            raise TooManyLogins(retry_after=math.ceil(wait))
        for key in bounds:
            self._failures.setdefault(key, []).append(now)
            self._failures.move_to_end(key)
        while len(self._failures) > self._limit:
            self._failures.popitem(last=False)
        return Try(self, tuple(bounds), name_key, place, now)

    def take_back(self, keys: tuple[Key, ...], at: float) -> None:
        for key in keys:
            failures = self._failures.get(key)
            if failures is None or at not in failures:
                continue
            failures.remove(at)
            if not failures:
                del self._failures[key]

    def remember_place(self, name_key: str, place: str) -> None:
        self._places[name_key, place] = None
        self._places.move_to_end((name_key, place))
        if len(self._places) > KNOWN_PLACES:
            self._places.popitem(last=False)

    @property
    def remembered(self) -> int:
        return len(self._failures) + len(self._places)

    def _wait(self, key: Key, bound: int, now: float) -> float:
        """Seconds until one more try is allowed."""
        failures = self._failures.get(key)
        if failures is None:
            return 0.0
        while failures and failures[0] <= now - WINDOW:
            del failures[0]
        if len(failures) < bound:
            return 0.0
        return failures[len(failures) - bound] + WINDOW - now

    def _forget(self, before: float) -> None:
        while self._failures:
            key = next(iter(self._failures))
            failures = self._failures[key]
            if failures and failures[-1] > before:
                return
            del self._failures[key]


def place_of(address: str) -> tuple[str, str]:
    """The address as it is counted, and the network around it."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64], address[:64]
    if not isinstance(ip, IPv6Address):
        return str(ip), str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped), str(ip.ipv4_mapped)
    return str(ip_network((ip, 64), strict=False)), str(ip_network((ip, 48), strict=False))
