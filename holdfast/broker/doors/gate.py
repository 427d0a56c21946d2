"""How many may be here, counted from the moment a connection is taken: also those that never say a word."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.addresses import neighbourhood

ROOM_TO_BE_REFUSED = 64
"""Connections above the limit that may still say CONNECT, so that their clients are told why they must go."""


class Gate:
    """0 means no limit. Addresses are counted as neighbourhoods (an IPv6 /64 is one)."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most + most // 10 + ROOM_TO_BE_REFUSED if most else 0
        self._most_per_address = most_per_address
        self._here: dict[str, int] = {}
        self.count = 0
        self.turned_away = 0
        self._empty = asyncio.Event()
        self._empty.set()

    def enter(self, address: str) -> Callable[[], None] | None:
        """What to call when it has gone, or None: there is no room."""
        key = neighbourhood(address)
        here = self._here.get(key, 0)
        if (self._most and self.count >= self._most) or (
            self._most_per_address and here >= self._most_per_address
        ):
            self.turned_away += 1
            return None
        self._here[key] = here + 1
        self.count += 1
        self._empty.clear()
        return lambda: self._leave(key)

    async def emptied(self) -> None:
        """Until nobody is here any more."""
        await self._empty.wait()

    def _leave(self, key: str) -> None:
        self.count -= 1
        if not self.count:
            self._empty.set()
        left = self._here[key] - 1
        if left:
            self._here[key] = left
        else:
            del self._here[key]
