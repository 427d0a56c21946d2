"""One blob, open for reading: its size, its etag, its bytes or any range of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.blobs.metrics import BlobMetrics
from holdfast.blobs.model import Blob
from holdfast.blobs.place import Content


class Download:
    """What is open stays readable to its end, also when the blob is collected meanwhile."""

    def __init__(self, blob: Blob, content: Content, threads: Executor, metrics: BlobMetrics) -> None:
        self.blob = blob
        self._content = content
        self._threads = threads
        self._metrics = metrics

    @property
    def size(self) -> int:
        return self.blob.size

    @property
    def etag(self) -> str:
        return self.blob.etag

    @property
    def path(self) -> Path | None:
        """A path to the same bytes for a server that sends files itself.

        The name is used once, so it never leads to other bytes; when the blob was collected a moment ago it leads
        nowhere. None when the file is in an object store: then `stream` it.
        """
        return self._content.path

    async def stream(self, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """The bytes from `start` up to `stop` (the end), in pieces; memory holds one of them."""
        stop = self.size if stop is None else min(stop, self.size)
        pieces = self._content.read(start, stop)
        loop = asyncio.get_running_loop()
        while (piece := await loop.run_in_executor(self._threads, next, pieces, b"")) != b"":
            self._metrics.sent(len(piece))
            yield piece

    async def close(self) -> None:
        self._content.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
