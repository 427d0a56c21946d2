"""The same client for scripts without an event loop: it runs on a thread of its own, and a call waits for its answer.

    with Blocking("home.db") as app:
        book = app(app.ledger.add_book("Our home"))
        for bills in app.each(app.ledger.watch(book.id)): ...

There is no second API to keep alike: `app.ledger` is the real one, `app(...)` runs what it gives.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.client.holdfast import Holdfast, Transport

T = TypeVar("T")


class Blocking(Holdfast):
    def __init__(
        self,
        path: str | Path,
        *,
        server: str = "127.0.0.1:8000",
        mqtt: str | None = None,
        chat: str | bool = False,
        transport: Transport = "http",
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast", daemon=True)
        super().__init__(path, server=server, mqtt=mqtt, chat=chat, transport=transport)

    def __enter__(self) -> Self:
        self._thread.start()
        self(self.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self(self.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """What it answers, or what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def each(self, stream: AsyncIterator[T]) -> Iterator[T]:
        """A live query as a plain loop."""

        async def following() -> T:
            return await anext(stream)

        try:
            while True:
                yield self(following())
        except StopAsyncIteration:
            return
        finally:
            if isinstance(stream, AsyncGenerator):
                self(stream.aclose())
