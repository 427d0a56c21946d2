"""After trouble the store tries a write of its own until one succeeds.

Without it a server that is not ready, and therefore gets no writes, would never find out that there is room on
the disk again, or that PostgreSQL is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError

EVERY_SECONDS = 1.0


class Healing:
    def __init__(self, in_trouble: Callable[[], bool], try_to_write: Callable[[], Awaitable[object]]) -> None:
        self._in_trouble = in_trouble
        self._try_to_write = try_to_write
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """On the loop, whenever there may be trouble."""
        if self._task is None and self._in_trouble():
            self._task = asyncio.get_running_loop().create_task(self._until_written())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _until_written(self) -> None:
        try:
            while self._in_trouble():
                await asyncio.sleep(EVERY_SECONDS)
                try:
                    await self._try_to_write()
                except HoldfastError:
                    continue  # still in trouble
        finally:
            self._task = None
