"""What goes on in the background: each task does its work again and again, and survives what goes wrong in it.

| it raises | then |
|---|---|
| Offline (no answer, or the server is busy) | again; the gate lets it through when it is time |
| LoginNeeded | again after the next login |
| Refused | told as the last error; again after a while |
| anything else | a defect of ours: told as an event; again after a while |
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.client.backoff import Backoff
from holdfast.client.errors import LoginNeeded, Offline, Refused
from holdfast.client.news import Fault, News
from holdfast.client.timing import Timing

AFTER_TROUBLE = Backoff(first=2.0, cap=300.0, least=1.0)


class Tasks:
    def __init__(self, timing: Timing, news: News) -> None:
        self._timing = timing
        self._news = news
        self._tasks: list[asyncio.Task[None]] = []
        self.logged_in = asyncio.Event()

    def start(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        """`step` waits for something to do, and does it."""
        self._tasks.append(asyncio.create_task(self._persist(name, step), name=f"holdfast {name}"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _persist(self, name: str, step: Callable[[], Awaitable[None]]) -> None:
        troubles = 0
        while True:
            try:
                await step()
                troubles = 0
            except Offline as error:
                self._news.trouble(error)
            except LoginNeeded as error:
                self._news.trouble(error)
                self.logged_in.clear()
                await self.logged_in.wait()
            except Refused as error:
                troubles += 1
                self._news.trouble(error)
                await self._pause(troubles)
            except Exception as error:  # noqa: BLE001 - told as an event
                troubles += 1
                self._news.trouble(error)
                self._news.tell(Fault(name, f"{type(error).__name__}: {error}"))
                await self._pause(troubles)

    async def _pause(self, troubles: int) -> None:
        await self._timing.sleep(AFTER_TROUBLE.delay(troubles, self._timing.draw()))
