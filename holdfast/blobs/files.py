"""The room's face: receive content, open it, keep it for a backup, put it back from one.

The order of steps in `_arrive` is the heart of the protocol (docs/rooms/blobs.md): the database hears of a file
before it exists and takes it in only when it is in place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from holdfast.blobs import arrival, collection
from holdfast.blobs import queries as sql
from holdfast.blobs.arrival import Claim
from holdfast.blobs.digest import Digesting
from holdfast.blobs.download import Download
from holdfast.blobs.incoming import Incoming, TemporaryFile
from holdfast.blobs.metrics import BlobMetrics
from holdfast.blobs.model import Blob, Digest, blob_name
from holdfast.blobs.place import Place
from holdfast.blobs.references import find
from holdfast.blobs.spool import Spool
from holdfast.blobs.upload import Arrive, Upload
from holdfast.clock import Clock
from holdfast.errors import FileGone, HoldfastError
from holdfast.ids import XidMaker
from holdfast.log import get_logger
from holdfast.settings import Blobs
from holdfast.store import Database

T = TypeVar("T")

THREADS = 4
HOLD_SECONDS = 300.0
STOP_SECONDS = 3.0
PAGE = 500

log = get_logger("blobs")


class Files:
    def __init__(
        self,
        db: Database,
        place: Place,
        incoming: Incoming,
        clock: Clock,
        settings: Blobs,
        metrics: BlobMetrics,
    ) -> None:
        self._db = db
        self._place = place
        self._incoming = incoming
        self._clock = clock
        self._grace_ms = round(settings.grace_hours * 3_600_000)
        self._metrics = metrics
        self._once = XidMaker(clock)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="holdfast-blobs")
        self._arriving: set[asyncio.Task[Blob]] = set()

    async def stop(self) -> None:
        """Lets what is arriving arrive, within reason: what does not get there is the next sweep's."""
        if self._arriving:
            await asyncio.wait(self._arriving, timeout=STOP_SECONDS)
        await asyncio.to_thread(self._threads.shutdown, wait=not self._arriving, cancel_futures=True)

    # -- in

    def upload(self, *, limit: int) -> Upload:
        """An upload of at most `limit` bytes, to be used with `async with`."""
        return self._upload(limit, self._arrive)

    async def receive(self, chunks: AsyncIterable[bytes], *, limit: int, holder: str) -> Blob:
        """Keeps what streams in, claimed for `holder`."""
        async with self.upload(limit=limit) as upload:
            async for chunk in chunks:
                await upload.write(chunk)
            return await upload.finish(holder)

    def spool(self, digesting: Digesting | None) -> Spool:
        return Spool(self._incoming, self._once(), self._threads, digesting)

    def _upload(self, limit: int, arrive: Arrive) -> Upload:
        digesting = Digesting()
        spool = self.spool(digesting)

        async def to_the_end(file: TemporaryFile, digest: Digest, holder: str) -> Blob:
            try:
                return await arrive(file, digest, holder)
            finally:
                await spool.discard()

        async def whatever_happens(file: TemporaryFile, digest: Digest, holder: str) -> Blob:
            """A caller who is cancelled now does not stop the steps half-way."""
            task = asyncio.create_task(to_the_end(file, digest, holder))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)
            return await asyncio.shield(task)

        return Upload(spool, digesting, limit, whatever_happens, self._metrics)

    async def _arrive(self, file: TemporaryFile, digest: Digest, holder: str) -> Blob:
        now = self._clock.now_ms()
        claim = Claim(holder, now + self._grace_ms)
        name = blob_name(digest.sha256, self._once())
        there = await self._db.write(arrival.announce, digest, name, claim, now)
        if there is not None:
            self._metrics.known()
            return there
        try:
            await self.on_thread(partial(self._place.keep, file.path, name))
            settled = await self._db.write(arrival.settle, digest, name, claim, self._clock.now_ms())
        except Exception:
            await self.abandon(name)
            raise
        if settled.superfluous:
            self._metrics.known()
        else:
            self._metrics.stored()
        return settled.blob

    async def abandon(self, name: str) -> None:
        """Condemns an announced file, unless it was settled after all (a commit whose answer was lost)."""
        try:
            await self._db.write(arrival.abandon, name, self._clock.now_ms())
        except HoldfastError as error:
            log.warning("upload_left_to_sweep", name=name, error=error.reason)

    # -- out

    async def open(self, sha256: str) -> Download:
        """Raises `FileGone` when there is no such blob."""
        while (blob := await self._db.glance(find, sha256)) is not None:
            try:
                return await self.open_blob(blob)
            except FileGone:
                again = await self._db.glance(find, sha256)
                if again is not None and again.name == blob.name:
                    log.error("file_lost", sha256=sha256, name=blob.name)
                    raise
        raise FileGone

    async def open_blob(self, blob: Blob) -> Download:
        """For a door that has just read the row together with what entitles its user."""
        content = await self.on_thread(partial(self._place.open, blob.name))
        return Download(blob, content, self._threads, self._metrics)

    # -- backup and restore

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """While this is open, whatever a snapshot taken inside it refers to keeps its file.

        The gate opens by itself a few minutes after the end, also when the process dies.
        """

        async def renew() -> None:
            while True:
                await asyncio.sleep(HOLD_SECONDS / 3)
                await self._shut_gate()

        await self._shut_gate()
        renewing = asyncio.create_task(renew())
        try:
            yield
            if renewing.done():
                renewing.result()  # raises: the hold was lost on the way, and the backup must not be trusted
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def _shut_gate(self) -> None:
        until = self._clock.now_ms() + round(HOLD_SECONDS * 1000)
        await self._db.write(collection.shut_gate, until)

    async def every(self) -> AsyncIterator[Blob]:
        """All blobs, in the order of their hashes. For a backup, inside `hold`."""
        above = ""
        while page := await self._db.read(
            lambda view, after: view.rows(sql.PAGE, above=after, limit=PAGE), above
        ):
            for blob in page:
                yield blob
            above = page[-1].sha256

    async def restore(self, sha256: str, chunks: AsyncIterable[bytes]) -> Blob:
        """Puts a file back for a row that a restored database has; the content must have that hash."""
        blob = await self._db.glance(find, sha256)
        if blob is None:
            raise FileGone

        async def put_back(file: TemporaryFile, _digest: Digest, _holder: str) -> Blob:
            await self.on_thread(partial(self._place.keep, file.path, blob.name))
            return blob

        async with self._upload(blob.size, put_back) as upload:
            async for chunk in chunks:
                await upload.write(chunk)
            return await upload.finish("", expected=sha256)

    # -- threads

    def on_thread(self, job: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, job)
