"""The gate that every request passes: none goes while we know that none would arrive.

While the server has not answered, one request at a time finds out; the others wait for what it meets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from holdfast.client.backoff import USUAL, Backoff, Reachability
from holdfast.client.errors import Busy, Refused, Unanswered
from holdfast.client.timing import Timing, first_of


class Network:
    def __init__(self, timing: Timing, backoff: Backoff = USUAL) -> None:
        self._timing = timing
        self._state = Reachability(backoff)
        self._news = asyncio.Event()
        self._probing = False
        self.on_change: Callable[[bool], None] = lambda _online: None

    @property
    def online(self) -> bool:
        return self._state.online is True

    @property
    def next_try_in(self) -> float:
        return self._state.wait(self._timing.monotonic())

    @asynccontextmanager
    async def attempt(self, *, at_once: bool = False) -> AsyncIterator[None]:
        """Around one request. `at_once`: a person waits for it, so it does not wait for its turn."""
        probe = False
        if not at_once:
            probe = await self._take_turn()
        turn = self._state.turn
        try:
            yield
        except Busy as busy:
            now, draw = self._timing.monotonic(), self._timing.draw()
            self._move(partial(self._state.asked_to_wait, now, draw, turn, busy.retry_after))
            raise
        except Unanswered:
            now, draw = self._timing.monotonic(), self._timing.draw()
            self._move(partial(self._state.unanswered, now, draw, turn))
            raise
        except Refused:
            self._move(self._state.answered)  # a no is an answer
            raise
        else:
            self._move(self._state.answered)
        finally:
            if probe:
                self._probing = False
                self._tell()

    def network_returned(self) -> None:
        """What the operating system knows and we do not: a network is there again."""
        self._move(self._state.network_returned)

    async def when_online(self) -> None:
        """For connections beside HTTP: they need not find out for themselves."""
        while not self.online:
            await self._news.wait()

    def _move(self, step: Callable[[], None]) -> None:
        before, turn = self.online, self._state.turn
        step()
        if self._state.turn != turn:
            self._tell()
        if self.online != before:
            self.on_change(self.online)

    def _tell(self) -> None:
        """A new event for the next news: whoever looked before it was told waits for this one."""
        told, self._news = self._news, asyncio.Event()
        told.set()

    async def _take_turn(self) -> bool:
        """Waits until a request may go; True when it goes alone."""
        while True:
            wait, news = self.next_try_in, self._news
            if wait <= 0:
                if not self._state.alone:
                    return False
                if not self._probing:
                    self._probing = True
                    return True
                await news.wait()
            else:
                await first_of(news, self._timing.sleep(wait))
