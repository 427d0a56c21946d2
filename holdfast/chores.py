"""Work that comes round: sweeps of what is only kept for a time. Deferrable, in small turns, never in the way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import msgspec

from holdfast.errors import HoldfastError
from holdfast.log import get_logger

log = get_logger("chores")


class Chore(msgspec.Struct, frozen=True):
    name: str
    every_seconds: float
    do: Callable[[], Awaitable[int]]
    """Answers how many rows it has dealt with."""


class Chores:
    def __init__(self, *chores: Chore) -> None:
        self._chores = chores
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(_repeat(chore), name=f"chore: {chore.name}") for chore in self._chores
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _repeat(chore: Chore) -> None:
    while True:
        # at another moment in each process, so that they do not meet at the same rows
        await asyncio.sleep(chore.every_seconds * random.uniform(0.75, 1.25))  # noqa: S311 - no secret
        try:
            rows = await chore.do()
        except HoldfastError as error:
            log.warning("chore_failed", chore=chore.name, error=error.reason)
        except Exception:
            # whatever it was, the next round may succeed, and without it the store would grow for ever
            log.exception("chore_failed", chore=chore.name)
        else:
            log.debug("chore_done", chore=chore.name, rows=rows)
