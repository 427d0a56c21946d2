"""serverIds: small numbers, unique over all users, taken from the store in blocks.

A block is taken in a transaction of its own, so that pushes of different users never wait for each other at the one
row that counts them. What is left of a block when the process ends is never given out.
"""

from __future__ import annotations

import asyncio

from holdfast.library.actions import take_ids
from holdfast.store import Database

BLOCK = 10_000


class ServerIds:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._free = range(0)
        self._taking = asyncio.Lock()

    async def reserve(self, count: int) -> range:
        """`count` ids for one push; what it does not need is lost."""
        async with self._taking:
            if len(self._free) < count:
                block = max(BLOCK, count)
                first = await self._db.write(take_ids, block)
                self._free = range(first, first + block)
            reserved, self._free = self._free[:count], self._free[count:]
            return reserved
