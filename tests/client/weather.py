"""What the network does to what passes through it: cut before, cut after the commit, late, twice, out of order."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self


class Weather:
    """Shared by the proxies of one network. Storms until it is told to be calm."""

    def __init__(self, seed: int, strength: float = 0.12) -> None:
        self._random = random.Random(seed)
        self.strength = strength
        self.calm = False
        self.down = False
        """Nothing gets through at all."""
        self.happened: Counter[str] = Counter()

    def strikes(self, what: str, weight: float = 1.0) -> bool:
        if self.calm or self._random.random() >= self.strength * weight:
            return False
        self.happened[what] += 1
        return True

    async def delay(self) -> None:
        """Now and then long enough for others to overtake."""
        if self.strikes("late"):
            await asyncio.sleep(self._random.random() * 0.05)

    def choice(self, count: int) -> int:
        return self._random.randrange(count)


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Proxy:
    """A port of its own in front of a port that may change."""

    def __init__(self, weather: Weather, upstream: Callable[[], str]) -> None:
        self.weather = weather
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut_all()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_all(self) -> None:
        for writer in tuple(self._open):
            writer.transport.abort()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self._upstream().rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self._open.add(writer)
        return reader, writer

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        try:
            if not self.weather.down:
                await self.serve(reader, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError
