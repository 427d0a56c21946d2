"""An image on its way in: streamed to disk, its type told by its content, kept only if its sender may add it."""

from __future__ import annotations

from msgspec import Struct

from holdfast.blobs import Blob, Upload, unclaim
from holdfast.errors import HoldfastError, InvalidField, TooLarge, WrongDigest, WrongType
from holdfast.http.idempotency import Key, key_of
from holdfast.http.multipart import Part, parts
from holdfast.http.visit import AnyRequest
from holdfast.ledger.image_types import ENOUGH, ImageType, image_type
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.looking import require_own_bill
from holdfast.ledger.model import By, Image, NewImage
from holdfast.ledger.rules import checked_id
from holdfast.settings.fields import KIB

AROUND = 64 * KIB
"""What the other fields, and the borders between them, may add to the file."""


class Form(Struct, frozen=True):
    """Everything but the file."""

    bill_id: str
    id: str | None
    md5: str | None


async def receive(ledger: Ledger, request: AnyRequest, by: By) -> Image:
    most = ledger.limits.image + AROUND
    if int(request.headers.get("content-length", "0") or 0) > most:
        raise TooLarge(f"an image has at most {ledger.limits.image} bytes")
    holder = f"ledger:{by.user_id}:{ledger.new_id()}"
    async with ledger.files.upload(limit=ledger.limits.image) as upload:
        form, kind = await _read(ledger, request, by, upload, most)
        blob = await upload.finish(holder)
    try:
        if form.md5 is not None and form.md5.lower() != blob.md5:
            raise WrongDigest
        return await _add(ledger, by, form, kind, blob, holder)
    except HoldfastError as error:
        if error.status < 500:  # otherwise nobody knows; the claim ends by itself
            await ledger.db.write(unclaim, blob.sha256, holder)
        raise


async def _read(
    ledger: Ledger, request: AnyRequest, by: By, upload: Upload, most: int
) -> tuple[Form, ImageType]:
    fields: dict[str, str] = {}
    kind: ImageType | None = None
    allowed = False
    async for part in parts(request, most):
        if part.name == "file":
            if kind is not None:
                raise InvalidField("file", "only one at a time")
            if "bill_id" in fields:  # refused before the file has travelled
                await ledger.db.glance(require_own_bill, by.user_id, fields["bill_id"])
                allowed = True
            kind = await _file(part, upload)
        elif part.name in ("bill_id", "_id", "md5"):
            fields[part.name] = await part.text()
    if kind is None:
        raise InvalidField("file", "is missing")
    if "bill_id" not in fields:
        raise InvalidField("bill_id", "is missing")
    if not allowed:
        await ledger.db.glance(require_own_bill, by.user_id, fields["bill_id"])
    id_ = fields.get("_id")
    return Form(fields["bill_id"], None if id_ is None else checked_id("_id", id_), fields.get("md5")), kind


async def _file(part: Part, upload: Upload) -> ImageType:
    kind = None
    async for chunk in part.chunks:
        await upload.write(chunk)
        if kind is None and len(upload.head) >= ENOUGH:
            kind = _required(upload.head)
    return kind or _required(upload.head)


def _required(head: bytes) -> ImageType:
    kind = image_type(head)
    if kind is None:
        raise WrongType("This is not an image that is accepted here: send JPEG, PNG, WebP, GIF or HEIC.")
    return kind


async def _add(ledger: Ledger, by: By, form: Form, kind: ImageType, blob: Blob, holder: str) -> Image:
    key: Key | None = None
    if form.id is None:
        key = key_of(by.user_id, f"{form.bill_id}\n{blob.sha256}".encode())
    new = NewImage(
        id=form.id or ledger.new_id(),
        bill_id=form.bill_id,
        sha256=blob.sha256,
        md5=blob.md5,
        size=blob.size,
        mime=kind.mime,
        ext=kind.ext,
        holder=holder,
    )
    return await ledger.write(by, ledger.orders.add_image(new), Image, key)
