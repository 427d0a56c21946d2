"""Resumable uploads (what tus needs): append at an offset, survive cuts and restarts, finish into a blob."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from functools import partial as bound

from holdfast.blobs import partials, references
from holdfast.blobs.files import Files
from holdfast.blobs.model import Blob, Partial, piece_name
from holdfast.blobs.place import Place
from holdfast.blobs.spool import Spool
from holdfast.clock import Clock
from holdfast.errors import FileGone, TooLarge, WrongOffset
from holdfast.ids import XidMaker
from holdfast.settings import Blobs
from holdfast.settings.fields import MIB
from holdfast.store import Database

PIECE_BYTES = 16 * MIB  # what a crash of the server may cost a client that is sending

Accept = Callable[[bytes], None]


def _anything(_head: bytes) -> None:
    return


class ResumableUploads:
    def __init__(self, db: Database, files: Files, place: Place, clock: Clock, settings: Blobs) -> None:
        self._db = db
        self._files = files
        self._place = place
        self._clock = clock
        self._grace_ms = round(settings.grace_hours * 3_600_000)
        self._once = XidMaker(clock)

    async def begin(self, holder: str, *, limit: int, length: int | None, note: str = "") -> Partial:
        """`length` may be declared later; `note` is the door's own (its metadata) and is given back."""
        expires_ms = self._clock.now_ms() + self._grace_ms
        partial = Partial(self._once(), holder, limit, length, 0, note, expires_ms, None)
        return await self._db.write(partials.begin, partial)

    async def status(self, upload_id: str) -> Partial:
        """Raises `FileGone` when there is none, or none any more."""
        return await self._db.glance(partials.status, upload_id, self._clock.now_ms())

    async def declare_length(self, upload_id: str, length: int) -> Partial:
        return await self._db.write(partials.declare_length, upload_id, length, self._clock.now_ms())

    async def drop(self, upload_id: str) -> None:
        await self._db.write(partials.drop, upload_id, self._clock.now_ms())

    async def append(
        self, upload_id: str, start: int, chunks: AsyncIterable[bytes], *, whole: bool = False
    ) -> Partial:
        """Adds what streams in at offset `start`. When the stream is cut (or raises), what came is kept, and the error
        raised; `whole`: then nothing of it is kept."""
        partial = await self.status(upload_id)
        if partial.received != start or partial.sha256 is not None:
            raise WrongOffset(partial.received)
        spool = self._files.spool(None)
        cut: BaseException | None = None
        try:
            try:
                async for chunk in chunks:
                    if spool.size + len(chunk) > partial.room:
                        raise TooLarge("this is more than the upload's length")
                    await spool.add(chunk)
                    if spool.size >= PIECE_BYTES and not whole:
                        partial = await self._keep(spool, partial)
                        await spool.discard()
                        spool = self._files.spool(None)
            except TooLarge:
                raise
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - raised again below
                cut = error
            if spool.size and not (whole and cut is not None):
                partial = await asyncio.shield(asyncio.ensure_future(self._keep(spool, partial)))
        finally:
            await spool.discard()
        if cut is not None:
            raise cut
        return partial

    async def _keep(self, spool: Spool, partial: Partial) -> Partial:
        file = await spool.finish()
        name = piece_name(self._once())
        await self._db.write(partials.announce_piece, name, self._clock.now_ms())
        try:
            await self._files.on_thread(lambda: self._place.keep(file.path, name))
            now = self._clock.now_ms()
            return await self._db.write(
                partials.grow, partial.id, partial.received, spool.size, name, now, now + self._grace_ms
            )
        except Exception:
            await self._files.abandon(name)
            raise

    async def finish(
        self, upload_id: str, *, accept: Accept = _anything, expected: str | None = None
    ) -> Blob:
        """All of it, as a blob claimed for the upload's holder; again it answers the same blob.

        `accept` sees the first bytes and raises when it does not want them; `expected` is the SHA-256.
        """
        partial = await self.status(upload_id)
        if partial.sha256 is not None:
            return await self._finished(partial)
        if partial.length is not None and partial.received != partial.length:
            raise WrongOffset(partial.received)
        try:
            async with self._files.upload(limit=partial.most) as upload:
                async for chunk in self._content(partial):
                    await upload.write(chunk)
                accept(upload.head)
                blob = await upload.finish(partial.holder, expected=expected)
        except FileGone:
            # its pieces went while we read them: another call has finished it
            partial = await self.status(upload_id)
            if partial.sha256 is None:
                raise
            return await self._finished(partial)
        await self._db.write(partials.finish, upload_id, blob.sha256, partial.received, self._clock.now_ms())
        return blob

    async def _finished(self, partial: Partial) -> Blob:
        assert partial.sha256 is not None
        until_ms = self._clock.now_ms() + self._grace_ms
        return await self._db.write(references.claim, partial.sha256, partial.holder, until_ms)

    async def _content(self, partial: Partial) -> AsyncIterator[bytes]:
        for name, size in await self._db.read(partials.pieces, partial.id):
            content = await self._files.on_thread(bound(self._place.open, name))
            try:
                pieces = content.read(0, size)
                while piece := await self._files.on_thread(bound(next, pieces, b"")):
                    yield piece
            finally:
                content.close()
