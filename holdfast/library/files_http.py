"""`/file/*`: is it here, upload it, claim it, download it. Resumable uploads are `tus`'s."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from litestar import Router
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter
from litestar.types import ASGIApp
from msgspec import Meta, Struct

from holdfast.errors import InvalidField, Malformed
from holdfast.http.download import FileReply
from holdfast.http.handlers import get, post
from holdfast.http.multipart import parts
from holdfast.http.visit import AnyRequest, caller
from holdfast.library.examples import PDF
from holdfast.library.pdfs import Pdfs
from holdfast.library.rules import WrongField, checked_md5

FORM_BYTES = 64 * 1024  # what a form may add to its file

Hash = Annotated[
    str,
    QueryParameter(
        name="hash", max_length=32, description="MD5 of the file, 32 hexadecimal digits", required=True
    ),
]


class Checked(Struct, frozen=True, omit_defaults=True):
    exists: Annotated[bool, Meta(examples=[True])]
    claimable: bool = False
    """It is known: whoever shows that he has it (`/file/claim`) need not upload it."""


class Uploaded(Struct, frozen=True):
    hash: Annotated[str, Meta(examples=[PDF])]
    path: Annotated[str, Meta(examples=[f"{PDF}.pdf"])]


class ClaimRequest(Struct, frozen=True, rename="camel"):
    """Either `hash`, or `claimId` and `sha256`."""

    hash: Annotated[str | None, Meta(description="which file; asks for a challenge", examples=[PDF])] = None
    claim_id: Annotated[str | None, Meta(description="of the challenge that is answered")] = None
    sha256: Annotated[
        str | None,
        Meta(description="lower-case hex SHA-256 of the nonce's characters and then the bytes asked for"),
    ] = None


class Claim(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A challenge; or that it was answered."""

    claim_id: str | None = None
    offset: Annotated[int | None, Meta(examples=[81920])] = None
    length: Annotated[int | None, Meta(examples=[1048576])] = None
    nonce: Annotated[str | None, Meta(examples=["1f6c0f0e5b6f4d0c9b1f0a2d3c4b5a69"])] = None
    hash: str | None = None
    exists: bool | None = None


def md5_in(text: str | None, field: str = "hash") -> str:
    try:
        found = checked_md5(text)
    except WrongField as error:
        raise InvalidField(field, str(error)) from None
    if found is None:
        raise InvalidField(field, "must be an MD5 in 32 hexadecimal digits")
    return found


async def _file_in(request: AnyRequest, most: int) -> AsyncIterator[bytes]:
    """The first file in a form; what stands beside it is skipped."""
    found = False
    async for part in parts(request, most):
        if not found and (part.is_file or part.name == "file"):
            found = True
            async for chunk in part.chunks:
                yield chunk
    if not found:
        raise Malformed("The form holds no file.")


def router(pdfs: Pdfs) -> Router:
    @get("/file/checkHash", summary="Is this file here?", security=[{"token": []}])
    async def check_hash(hash_: Hash) -> Checked:
        """`exists` for whoever may refer to it; `claimable` for whoever has still to show that he has it."""
        known = await pdfs.known(caller().user_id, md5_in(hash_))
        return Checked(known.exists, known.claimable)

    @post(
        "/file/upload",
        summary="Upload a PDF",
        status_code=200,
        security=[{"token": []}],
        request_max_body_size=pdfs.most + FORM_BYTES,
    )
    async def upload(request: AnyRequest) -> Uploaded:
        """The body is the file, or a multipart form with it. Kept for a day until an instrument score refers to it."""
        user = caller().user_id
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_form = kind == "multipart/form-data"
        chunks = _file_in(request, pdfs.most + FORM_BYTES) if is_form else request.stream()
        blob = await pdfs.receive(user, chunks)
        return Uploaded(blob.md5, f"{blob.md5}.pdf")

    @get(
        "/file/download",
        summary="A PDF",
        security=[{"token": []}],
        responses={200: ResponseSpec(None, description="The file; 206 for a `Range`, 304 for its `ETag`")},
    )
    async def download(hash_: Hash) -> ASGIApp:
        """For whoever has a living instrument score with it. With `ETag` and ranges."""
        md5 = md5_in(hash_)
        opened = await pdfs.open(caller().user_id, md5)
        return FileReply(opened, "application/pdf", name=f"{md5}.pdf")

    @post("/file/claim", summary="Show that you have a file", status_code=200, security=[{"token": []}])
    async def claim(data: JSONBody[ClaimRequest]) -> Claim:
        """With `hash`: a challenge, `{claimId, offset, length, nonce}`. With its answer, `{claimId, sha256}`: from now on
        you may refer to the file without uploading it."""
        user = caller().user_id
        if data.claim_id is not None and data.sha256 is not None:
            return Claim(hash=await pdfs.prove(user, data.claim_id, data.sha256), exists=True)
        if data.hash is None:
            raise InvalidField("hash", "is missing; or send claimId and sha256")
        claim_id, asked = await pdfs.challenge(user, md5_in(data.hash))
        return Claim(claim_id=claim_id, offset=asked.offset, length=asked.length, nonce=asked.nonce)

    return Router("/", route_handlers=[check_hash, upload, claim, download], tags=["files"])
