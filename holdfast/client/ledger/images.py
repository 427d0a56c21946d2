"""The images of bills: files that go up with their row, and come down when somebody wants to see one."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from pathlib import Path

import msgspec

from holdfast.client.contents import Content, Contents
from holdfast.client.errors import InvalidValue, Refused
from holdfast.client.http import Http
from holdfast.client.ledger import changes
from holdfast.client.ledger.changes import OUTBOX
from holdfast.client.ledger.model import Image
from holdfast.client.ledger.outbox import Upload, next_image
from holdfast.client.ledger.sync import LedgerSync
from holdfast.client.ledger.wire import Outcome
from holdfast.client.replica import Replica

LARGEST = 20 * 1024 * 1024
TYPES = (
    (b"\xff\xd8\xff", 0, "image/jpeg", "jpg"),
    (b"\x89PNG\r\n\x1a\n", 0, "image/png", "png"),
    (b"WEBP", 8, "image/webp", "webp"),
    (b"GIF8", 0, "image/gif", "gif"),
    (b"ftypheic", 4, "image/heic", "heic"),
    (b"ftypheix", 4, "image/heic", "heic"),
    (b"ftypmif1", 4, "image/heic", "heic"),
)


class _Stored(msgspec.Struct):
    data: msgspec.Raw


def type_of(head: bytes) -> tuple[str, str]:
    """By content, as the server does it: a name proves nothing."""
    for magic, at, mime, ext in TYPES:
        if head[at : at + len(magic)] == magic:
            return mime, ext
    raise InvalidValue("image", "give a JPEG, PNG, WebP, GIF or HEIC")


class Images:
    def __init__(self, replica: Replica, http: Http, contents: Contents, sync: LedgerSync) -> None:
        self._replica = replica
        self._http = http
        self._contents = contents
        self._sync = sync

    async def add(self, me: str, image_id: str, bill_id: str, source: Path | bytes) -> Image:
        content = await asyncio.to_thread(self._contents.add, source)
        image = self._described(image_id, bill_id, me, content)
        return await self._replica.write(partial(changes.add_image, me=me, image=image))

    def _described(self, image_id: str, bill_id: str, me: str, content: Content) -> Image:
        if content.size > LARGEST:
            raise InvalidValue("image", f"{LARGEST // 2**20} MiB at the most")
        mime, ext = type_of(content.head)
        return Image(image_id, bill_id, "", content.md5, content.size, mime, ext, "", me, "", 0)

    async def file(self, image: Image) -> Path:
        """Where its content is; fetched first if it is not here."""
        if not self._contents.has(image.md5):
            async with self._http.stream(f"/api/v1/images/{image.id}") as answer:
                await self._contents.receive(image.md5, answer.aiter_bytes())
        return self._contents.path(image.md5)

    # -- the outbox's files

    async def upload_when_there_are_some(self) -> None:
        changed = self._replica.watch((OUTBOX,))
        try:
            await self.upload_all()
            await changed.wait()
        finally:
            self._replica.unwatch(changed)

    async def upload_all(self, *, at_once: bool = False) -> None:
        while upload := await self._replica.write(partial(next_image, putting_off=self._sync.putting_off())):
            await self._upload(upload, at_once=at_once)

    async def _upload(self, upload: Upload, *, at_once: bool) -> None:
        image = upload.image
        if not self._contents.has(image.md5):
            gone = Outcome(400, 40000, "file_gone", "the file of this image is not in the replica any more")
            await self._sync.settle([upload.op], [gone])
            return
        boundary = secrets.token_hex(16)
        body = await asyncio.to_thread(self._multipart, image, boundary)
        try:
            answer = await self._http.ask(
                "POST",
                "/api/v1/images/upload",
                body=body,
                headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
                at_once=at_once,
            )
            stored = msgspec.json.decode(answer.content, type=_Stored).data
            outcome = Outcome(answer.status_code, data=stored)
        except Refused as refused:
            outcome = Outcome(refused.status, refused.code, refused.reason, refused.message)
        await self._sync.settle([upload.op], [outcome])

    def _multipart(self, image: Image, boundary: str) -> bytes:
        """At most 20 MiB, so it may be held."""
        parts = []
        for name, value in (("bill_id", image.bill_id), ("_id", image.id)):
            parts.append(
                f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            )
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{image.id}.{image.ext}"'
            f"\r\nContent-Type: {image.mime}\r\n\r\n".encode()
        )
        return b"".join(
            (*parts, self._contents.path(image.md5).read_bytes(), f"\r\n--{boundary}--\r\n".encode())
        )
