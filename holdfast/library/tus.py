"""Resumable uploads: tus 1.0.0 at `/file/tus`, with creation, creation-with-upload, creation-defer-length, expiration,
checksum and termination. Quotations are from its specification.

An upload that is complete becomes a file at once, with the request that completes it; its last answer names the
file's MD5 in `Upload-Hash`.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Mapping
from email.utils import formatdate

from litestar import Response, Router
from litestar.params import FromPath

from holdfast.blobs import Blob, Partial
from holdfast.errors import InvalidField, WrongOffset, WrongType
from holdfast.http.bare import Bare
from holdfast.http.envelope import failed
from holdfast.http.handlers import delete, head, options, patch, post
from holdfast.http.visit import AnyRequest, caller, visit
from holdfast.ids import MAX_ID
from holdfast.library.errors import ChecksumMismatch, WrongTusVersion
from holdfast.library.pdfs import Pdfs

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination"
ALGORITHMS = ("sha1", "md5", "sha256")
CONTENT = "application/offset+octet-stream"
METADATA_MAX = 4_000
ROOT = "/file/tus"


def _refused(request: AnyRequest, error: Exception) -> Response[object]:
    """ "The Tus-Resumable header MUST be included in every request and response"."""
    said = failed(request, error)
    said.headers["Tus-Resumable"] = VERSION
    if isinstance(error, WrongTusVersion):
        said.headers["Tus-Version"] = VERSION
    return said  # type: ignore[return-value]


def _answer(status: int, headers: Mapping[str, str]) -> Bare:
    return Bare(status, {"Tus-Resumable": VERSION, **headers})


def _require_version() -> None:
    if visit().header(b"tus-resumable") != VERSION:
        raise WrongTusVersion


def _number(name: str) -> int | None:
    text = visit().header(name.lower().encode())
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) > MAX_ID:
        raise InvalidField(name, "must be a number of bytes")
    return int(text)


def _where(partial: Partial) -> dict[str, str]:
    """Where it stands, and until when it may be continued."""
    expires = formatdate(partial.expires_ms / 1000, usegmt=True)
    return {"Upload-Offset": str(partial.received), "Upload-Expires": expires}


class _Checksum:
    """`Upload-Checksum`: an algorithm, and what it must come to."""

    def __init__(self, header: str) -> None:
        name, _, encoded = header.partition(" ")
        if name not in ALGORITHMS:
            raise InvalidField("Upload-Checksum", f"the algorithms are {', '.join(ALGORITHMS)}")
        self._hash = hashlib.new(name, usedforsecurity=False)
        try:
            self._expected = b64decode(encoded, validate=True)
        except (NotBase64, ValueError):
            self._expected = b""
        if len(self._expected) != self._hash.digest_size:
            raise InvalidField("Upload-Checksum", "must be an algorithm and a hash in Base64")

    async def over(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            self._hash.update(chunk)
            yield chunk
        if self._hash.digest() != self._expected:
            raise ChecksumMismatch


class Tus:
    def __init__(self, pdfs: Pdfs) -> None:
        self._pdfs = pdfs

    async def create(self, request: AnyRequest) -> Bare:
        user, here = caller().user_id, visit()
        length = _number("Upload-Length")
        deferred = here.header(b"upload-defer-length")
        if (length is None) == (deferred is None) or deferred not in (None, "1"):
            raise InvalidField("Upload-Length", "either it, or Upload-Defer-Length: 1")
        if length == 0:
            raise WrongType("This is not a PDF: it is empty.")
        note = here.header(b"upload-metadata") or ""
        if len(note) > METADATA_MAX:
            raise InvalidField("Upload-Metadata", f"must have at most {METADATA_MAX} bytes")
        partial = await self._pdfs.begin(user, length, note)
        blob = None
        if here.header(b"content-type") == CONTENT:
            partial, blob = await self._append(user, partial, 0, request)
        return _answer(201, {"Location": f"{ROOT}/{partial.id}", **_where(partial), **_hash(blob)})

    async def show(self, upload_id: str) -> Bare:
        partial, blob = await self._whole(caller().user_id, upload_id)
        said = {"Cache-Control": "no-store", **_where(partial), **_hash(blob)}
        if partial.length is None:
            said["Upload-Defer-Length"] = "1"
        else:
            said["Upload-Length"] = str(partial.length)
        if partial.note:
            said["Upload-Metadata"] = partial.note
        return _answer(200, said)

    async def go_on(self, upload_id: str, request: AnyRequest) -> Bare:
        user = caller().user_id
        if visit().header(b"content-type") != CONTENT:
            raise WrongType(f"The Content-Type of a PATCH must be {CONTENT}.")
        offset = _number("Upload-Offset")
        if offset is None:
            raise InvalidField("Upload-Offset", "is missing")
        partial = await self._pdfs.partial(user, upload_id)
        length = _number("Upload-Length")
        if length is not None and partial.length is None:
            partial = await self._pdfs.resumable.declare_length(upload_id, length)
        if partial.received != offset:
            raise WrongOffset(partial.received)
        partial, blob = await self._append(user, partial, offset, request)
        return _answer(204, {**_where(partial), **_hash(blob)})

    async def give_up(self, upload_id: str) -> Bare:
        partial = await self._pdfs.partial(caller().user_id, upload_id)
        await self._pdfs.resumable.drop(partial.id)
        return _answer(204, {})

    async def _append(
        self, user: int, partial: Partial, offset: int, request: AnyRequest
    ) -> tuple[Partial, Blob | None]:
        if partial.length is not None and partial.received == partial.length:
            return await self._whole(user, partial.id)  # sent again by somebody who never heard the answer
        header = visit().header(b"upload-checksum")
        chunks: AsyncIterator[bytes] = request.stream()
        if header is not None:
            chunks = _Checksum(header).over(chunks)
        partial = await self._pdfs.resumable.append(partial.id, offset, chunks, whole=header is not None)
        if partial.length is not None and partial.received == partial.length:
            return partial, await self._pdfs.finish(user, partial)
        return partial, None

    async def _whole(self, user: int, upload_id: str) -> tuple[Partial, Blob | None]:
        """An upload that was complete when the server died becomes a file now."""
        partial = await self._pdfs.partial(user, upload_id)
        if partial.length is None or partial.received != partial.length:
            return partial, None
        return partial, await self._pdfs.finish(user, partial)


def _hash(blob: Blob | None) -> dict[str, str]:
    return {} if blob is None else {"Upload-Hash": blob.md5}


def router(pdfs: Pdfs) -> Router:
    tus = Tus(pdfs)
    token = [{"token": list[str]()}]

    @options(ROOT, summary="What this tus server can", status_code=204)
    async def capabilities() -> None:
        return _answer(  # type: ignore[return-value]  # ready to be sent
            204,
            {
                "Tus-Version": VERSION,
                "Tus-Extension": EXTENSIONS,
                "Tus-Max-Size": str(pdfs.most),
                "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
            },
        )

    @post(ROOT, summary="Begin a resumable upload", security=token, request_max_body_size=None)
    async def create(request: AnyRequest) -> None:
        """201 with `Location`. `Upload-Length`, or `Upload-Defer-Length: 1`; the first bytes may come along."""
        _require_version()
        return await tus.create(request)  # type: ignore[return-value]

    @head(f"{ROOT}/{{upload_id:str}}", summary="Where an upload stands", security=token)
    async def show(upload_id: FromPath[str]) -> None:
        _require_version()
        return await tus.show(upload_id)  # type: ignore[return-value]

    @patch(
        f"{ROOT}/{{upload_id:str}}",
        summary="Continue an upload",
        status_code=204,
        security=token,
        request_max_body_size=None,
    )
    async def go_on(upload_id: FromPath[str], request: AnyRequest) -> None:
        """From `Upload-Offset` on. What arrived before a connection was cut is kept, but with `Upload-Checksum`."""
        _require_version()
        return await tus.go_on(upload_id, request)  # type: ignore[return-value]

    @delete(f"{ROOT}/{{upload_id:str}}", summary="Give an upload up", status_code=204, security=token)
    async def give_up(upload_id: FromPath[str]) -> None:
        _require_version()
        return await tus.give_up(upload_id)  # type: ignore[return-value]

    @post(
        f"{ROOT}/{{upload_id:str}}",
        summary="For clients that cannot PATCH or DELETE",
        status_code=204,
        security=token,
        request_max_body_size=None,
    )
    async def overridden(upload_id: FromPath[str], request: AnyRequest) -> None:
        """With `X-HTTP-Method-Override`."""
        _require_version()
        match visit().header(b"x-http-method-override"):
            case "PATCH":
                return await tus.go_on(upload_id, request)  # type: ignore[return-value]
            case "DELETE":
                return await tus.give_up(upload_id)  # type: ignore[return-value]
            case "HEAD":
                return await tus.show(upload_id)  # type: ignore[return-value]
            case _:
                raise InvalidField("X-HTTP-Method-Override", "must be PATCH, DELETE or HEAD")

    return Router(
        "/",
        route_handlers=[capabilities, create, show, go_on, give_up, overridden],
        tags=["files"],
        exception_handlers={Exception: _refused},
    )
