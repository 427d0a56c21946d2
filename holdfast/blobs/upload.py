"""One upload, from its first byte until it is a blob.

    async with files.upload(limit=limits.pdf) as upload:
        async for chunk in body:
            await upload.write(chunk)            # TooLarge as soon as it is
        blob = await upload.finish("library:42")

Whatever ends the block early (a cut, a limit, a wrong type) leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from holdfast.blobs.digest import Digesting
from holdfast.blobs.incoming import TemporaryFile
from holdfast.blobs.metrics import BlobMetrics
from holdfast.blobs.model import Blob, Digest
from holdfast.blobs.spool import Spool
from holdfast.errors import TooLarge, WrongDigest

HEAD_BYTES = 4096

Arrive = Callable[[TemporaryFile, Digest, str], Awaitable[Blob]]


class Upload:
    def __init__(
        self, spool: Spool, digesting: Digesting, limit: int, arrive: Arrive, metrics: BlobMetrics
    ) -> None:
        self._spool = spool
        self._digesting = digesting
        self._limit = limit
        self._arrive = arrive
        self._metrics = metrics
        self._handed_over = False
        self.head = b""
        """The first bytes (up to 4 KiB), for whoever tells a file's type by its content."""

    @property
    def size(self) -> int:
        return self._spool.size

    async def write(self, chunk: bytes) -> None:
        self._metrics.received(len(chunk))
        if self.size + len(chunk) > self._limit:
            raise TooLarge(f"the file is larger than the {self._limit} bytes that are allowed")
        if len(self.head) < HEAD_BYTES:
            self.head += chunk[: HEAD_BYTES - len(self.head)]
        await self._spool.add(chunk)

    async def finish(self, holder: str, *, expected: str | None = None) -> Blob:
        """The content is kept (durably) and claimed for `holder`; `expected` is the SHA-256 it must have."""
        file = await self._spool.finish()
        digest = self._digesting.digest()
        if expected is not None and digest.sha256 != expected:
            raise WrongDigest
        self._handed_over = True  # from here on `arrive` goes on, and cleans up, also without us
        return await self._arrive(file, digest, holder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._handed_over:
            await self._spool.discard()
