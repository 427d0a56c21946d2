"""The library's PDFs, as its doors see them: is it here, take it, prove it, give it back. By MD5, as the seed has it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from holdfast.blobs import Blob, BlobRoom, Download, Partial, find_by_md5
from holdfast.clock import Clock
from holdfast.errors import DigestTaken, FileGone, WrongType
from holdfast.library import possession
from holdfast.library import queries as sql
from holdfast.library.actions import holder
from holdfast.library.errors import ProofFailed
from holdfast.library.metrics import LibraryMetrics
from holdfast.log import get_logger
from holdfast.settings import Settings
from holdfast.store import Database, Snapshot

HEAD = 1024  # where readers look for the mark
RECENT_SECONDS = 1.0
MOST_RECENT = 10_000

log = get_logger("library")


def require_pdf(head: bytes) -> None:
    if b"%PDF-" not in head[:HEAD]:
        raise WrongType("This is not a PDF.")


class Known(msgspec.Struct, frozen=True):
    exists: bool
    claimable: bool


class Pdfs:
    def __init__(
        self, db: Database, blobs: BlobRoom, clock: Clock, settings: Settings, metrics: LibraryMetrics
    ) -> None:
        self._db = db
        self._files = blobs.files
        self.resumable = blobs.resumable
        self._clock = clock
        self._settings = settings.files
        self.most = settings.limits.pdf
        self._grace_ms = round(settings.blobs.grace_hours * 3_600_000)
        self._metrics = metrics
        self._key = b""
        self._recent: dict[tuple[int, str], tuple[float, Known]] = {}
        """What users were told about a hash, and until when that holds."""

    async def start(self) -> None:
        self._key = await self._db.write(possession.proof_key)

    # -- is it here?

    async def known(self, user_id: int, md5: str) -> Known:
        """To this user: a file that he has not shown to have is not here, but may be claimable.

        An answer is good for a second: it is advice, and a push looks for itself.
        """
        now = self._clock.monotonic()
        recent = self._recent.get((user_id, md5))
        if recent is not None and recent[0] > now:
            return recent[1]
        said = self._said(await self._db.glance(_find, user_id, md5))
        if len(self._recent) >= MOST_RECENT:
            self._recent.clear()
        self._recent[user_id, md5] = (now + RECENT_SECONDS, said)
        return said

    def _said(self, found: int | None) -> Known:
        if found is None:
            return Known(exists=False, claimable=False)
        exists = bool(found) or self._settings.instant_upload == "open"
        return Known(exists, not exists and self._settings.instant_upload == "proof")

    # -- in

    async def receive(self, user_id: int, chunks: AsyncIterator[bytes]) -> Blob:
        """Kept for a day, until something refers to it. Whatever ends the stream early leaves nothing behind."""
        async with self._files.upload(limit=self.most) as upload:
            looked = False
            async for chunk in chunks:
                await upload.write(chunk)
                if not looked and upload.size >= HEAD:
                    require_pdf(upload.head)
                    looked = True
            require_pdf(upload.head)
            blob = await upload.finish(holder(user_id))
        return await self._possessed(user_id, blob)

    async def begin(self, user_id: int, length: int | None, note: str) -> Partial:
        return await self.resumable.begin(holder(user_id), limit=self.most, length=length, note=note)

    async def partial(self, user_id: int, upload_id: str) -> Partial:
        """This user's unfinished upload. One that is all there but was never finished is finished first."""
        partial = await self.resumable.status(upload_id)
        if partial.holder != holder(user_id):
            raise FileGone("there is no such upload, or it has expired")
        return partial

    async def finish(self, user_id: int, partial: Partial) -> Blob:
        """All of it is there: now it becomes a file, or nothing."""
        try:
            blob = await self.resumable.finish(partial.id, accept=require_pdf)
        except (WrongType, DigestTaken):
            await self.resumable.drop(partial.id)
            raise
        return await self._possessed(user_id, blob)

    async def _possessed(self, user_id: int, blob: Blob) -> Blob:
        await self._db.write(possession.possess, user_id, blob.sha256)
        self._recent.pop((user_id, blob.md5), None)
        log.info("file_received", userId=user_id, hash=blob.md5, size=blob.size)
        return blob

    # -- a file that is here already

    async def challenge(self, user_id: int, md5: str) -> tuple[str, possession.Challenge]:
        """Its id, and what is asked."""
        blob = await self._db.glance(find_by_md5, md5)
        if blob is None or self._settings.instant_upload == "off":
            raise FileGone("there is no such file to claim; upload it")
        made = possession.challenge(
            self._key, user_id, blob, self._settings.proof_bytes, self._clock.now_ms()
        )
        return possession.sealed(self._key, made), made

    async def prove(self, user_id: int, claim_id: str, answer: str) -> str:
        """The MD5 of the file that is now this user's to refer to."""
        now = self._clock.now_ms()
        made = possession.unsealed(self._key, claim_id, user_id, now)
        async with await self._files.open(made.sha256) as download:
            asked = [piece async for piece in download.stream(made.offset, made.offset + made.length)]
            md5 = download.blob.md5
        if possession.answered(made, b"".join(asked)) != answer:
            self._metrics.proof("failed")
            log.warning("proof_failed", userId=user_id, hash=md5)
            raise ProofFailed
        await self._db.write(possession.claim_proved, user_id, made.sha256, now + self._grace_ms)
        self._recent.pop((user_id, md5), None)
        self._metrics.proof("passed")
        log.info("file_claimed", userId=user_id, hash=md5)
        return md5

    # -- out

    async def open(self, user_id: int, md5: str) -> Download:
        """For whoever has a living instrument score with it."""
        while (blob := await self._db.glance(_readable, user_id, md5)) is not None:
            try:
                return await self._files.open_blob(blob)
            except FileGone:
                again = await self._db.glance(_readable, user_id, md5)
                if again is not None and again.name == blob.name:
                    log.error("file_lost", sha256=blob.sha256, name=blob.name)
                    raise
        raise FileGone


def _find(view: Snapshot, user_id: int, md5: str) -> int | None:
    """1 when the user has it, 0 when it is only here."""
    return view.row(sql.FIND_FOR, user=user_id, md5=md5)


def _readable(view: Snapshot, user_id: int, md5: str) -> Blob | None:
    return view.row(sql.READABLE, user=user_id, md5=md5)
