"""`/api/v1/images`: files that belong to bills."""

from __future__ import annotations

from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath
from litestar.types import ASGIApp

from holdfast.http.download import FileReply
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import delete, get, post
from holdfast.http.visit import AnyRequest, caller
from holdfast.ledger.http import examples, upload
from holdfast.ledger.http.examples import shown
from holdfast.ledger.http.request import TOKEN, by
from holdfast.ledger.ledger import Ledger
from holdfast.ledger.looking import visible_image
from holdfast.ledger.model import Gone, Image

UPLOAD = "Add an image to a bill"


def handlers(ledger: Ledger) -> list[HTTPRouteHandler]:
    async def receive(request: AnyRequest) -> Answer[Image]:
        """multipart/form-data with `file`, `bill_id` (best before the file: then a refusal comes before the upload),
        optionally `_id` and `md5`. By the bill's creator. JPEG, PNG, WebP, GIF or HEIC, told by the content. Sent
        again with the same `_id`, bill and content, it answers 201 with what is there."""
        return answer(await upload.receive(ledger, request, by(ledger)))

    def upload_at(path: str) -> HTTPRouteHandler:
        return post(
            path,
            summary=UPLOAD,
            status_code=201,
            security=TOKEN,
            request_max_body_size=None,
            operation_id="upload" + path.replace("/", "_"),
            operation_class=shown(answered=examples.IMAGE, form=True),
        )(receive)

    @get(
        "/images/{image_id:str}",
        summary="An image's file",
        security=TOKEN,
        responses={200: ResponseSpec(None, description="The file; 206 for a `Range`, 304 for its `ETag`")},
    )
    async def download(image_id: FromPath[str]) -> ASGIApp:
        """For members of its book. `ETag` and `Range` as usual."""
        found = await ledger.db.glance(visible_image, caller().user_id, image_id)
        file = await ledger.files.open_blob(found.blob)
        return FileReply(file, found.image.mime, name=f"{image_id}.{found.image.ext}")

    @delete(
        "/images/{image_id:str}",
        summary="Delete an image",
        status_code=200,
        security=TOKEN,
        operation_class=shown(answered=examples.GONE),
    )
    async def remove(image_id: FromPath[str]) -> Answer[Gone]:
        """By its bill's creator. Its file goes, unless another image has the same. Again is harmless."""
        return answer(await ledger.write(by(ledger), ledger.orders.delete_image(image_id), Gone))

    return [upload_at("/images/upload"), upload_at("/image/upload"), download, remove]
