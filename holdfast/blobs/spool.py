"""Bytes on their way from the loop to a temporary file: gathered into pieces, hashed and written on a thread.

While one piece is hashed and written the next one is gathered, so a sender waits only for the slower of the two, and
memory holds two pieces, whatever the size of the file. MD5, the slowest of all, has a thread beside the one that writes.
Knows nothing about blobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

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
        self._under_way: asyncio.Future[list[BaseException | None]] | None = None
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
            await asyncio.wait(
                [self._under_way]
            )  # whoever waited for the piece heard what went wrong, or does not care
        await self._run(self._remove)

    def _start_writing(self) -> None:
        pieces, self._gathered, self._gathered_bytes = self._gathered, [], 0
        jobs = [self._run(lambda: self._write(pieces))]
        if self._digesting is not None:
            jobs.append(self._run(partial(self._digesting.update_md5, pieces)))
        self._under_way = asyncio.gather(*jobs, return_exceptions=True)

    def _run(self, job: Callable[[], None]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._threads, job)

    async def _finish_under_way(self) -> None:
        if self._under_way is not None:
            # a cancelled caller must not lose sight of the thread that still writes
            ended = await asyncio.shield(self._under_way)
            self._under_way = None
            for error in ended:
                if error is not None:
                    raise error

    # -- on a thread

    def _write(self, pieces: list[bytes]) -> None:
        if self._file is None:
            self._file = self._incoming.create(self._name)
        if self._digesting is not None:
            self._digesting.update_sha256(pieces)
        self._file.append(pieces)

    def _remove(self) -> None:
        if self._file is not None:
            self._file.discard()
