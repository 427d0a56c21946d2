"""Waits for something that may never come, but not for ever: one timer for all who wait, instead of one for each.

A request's body is nearly always there already; a timer made and taken back for it costs more than reading it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

LOOKS = 8
"""How often it looks while one wait lasts: nobody waits longer than he should by more than that part."""


class Patience:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._is_looking = False

    async def wait_for(self, awaitable: Awaitable[T]) -> T:
        """What `awaitable` gives, or `TimeoutError` after `seconds`."""
        task = asyncio.current_task()
        assert task is not None, "only a task can wait"
        loop = task.get_loop()
        self._deadlines[task] = loop.time() + self.seconds
        if not self._is_looking:
            self._is_looking = True
            loop.call_later(self.seconds / LOOKS, self._look, loop)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if task in self._late and task.uncancel() == 0:  # otherwise somebody else cancelled it too
                raise TimeoutError from None
            raise
        finally:
            del self._deadlines[task]
            self._late.discard(task)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task, deadline in self._deadlines.items():
            if deadline <= now and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._is_looking = bool(self._deadlines)
        if self._is_looking:
            loop.call_later(self.seconds / LOOKS, self._look, loop)
