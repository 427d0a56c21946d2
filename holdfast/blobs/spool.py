"""Bytes on their way from the loop to a temporary file: gathered into pieces, hashed and written on threads.

While one piece is hashed (by each hash on a thread of its own) and written the next one is gathered, so a sender waits
only for the slowest of them, and memory holds two pieces, whatever the size of the file. Knows nothing about blobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from holdfast.blobs.digest import Digesting
from holdfast.blobs.incoming import Incoming, TemporaryFile

PIECE_BYTES = 512 * 1024  # hashing it takes about 2 ms, far above the cost of a thread's turn


class Spool:
    def __init__(self, incoming: Incoming, name: str, threads: Executor, digesting: Digesting | None) -> None:
        self._incoming = incoming
        self._name = name
        self._threads = threads
        self._digesting = digesting
        self._file: TemporaryFile | None = None
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._under_way: asyncio.Future[None] | None = None
        self.size = 0

    async def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._gathered.append(chunk)
        self._gathered_bytes += len(chunk)
        if self._gathered_bytes >= PIECE_BYTES:
            await self._finish_under_way()
            self._start_writing()

    async def finish(self) -> TemporaryFile:
        """All of it is in the file (the file's survival of a power cut is the place's business)."""
        await self._finish_under_way()
        self._start_writing()
        await self._finish_under_way()
        assert self._file is not None
        return self._file

    async def discard(self) -> None:
        """Leaves nothing behind, also when the caller is cancelled while a piece is being written."""
        await asyncio.shield(self._discard())

    async def _discard(self) -> None:
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
            self._under_way.exception()  # whoever waited for the piece heard it, or does not care any more
        await self._run(self._remove)

    def _start_writing(self) -> None:
        piece = b"".join(self._gathered)  # one, since each call of a hash hands the interpreter over once
        self._gathered, self._gathered_bytes = [], 0
        jobs: list[Callable[[], None]] = [lambda: self._write(piece)]
        if self._digesting is not None:
            jobs += self._digesting.jobs(piece)
        self._under_way = asyncio.ensure_future(_all([self._run(job) for job in jobs]))

    def _run(self, job: Callable[[], None]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._threads, job)

    async def _finish_under_way(self) -> None:
        if self._under_way is not None:
            # a cancelled caller must not lose sight of the thread that still writes
            await asyncio.shield(self._under_way)
            self._under_way = None

    # -- on a thread

    def _write(self, piece: bytes) -> None:
        if self._file is None:
            self._file = self._incoming.create(self._name)
        self._file.append([piece])

    def _remove(self) -> None:
        if self._file is not None:
            self._file.discard()


async def _all(jobs: list[asyncio.Future[None]]) -> None:
    """Until the last of them is done, also when one fails: nothing may go on behind the back of whoever cleans up."""
    await asyncio.wait(jobs)
    for job in jobs:
        job.result()
