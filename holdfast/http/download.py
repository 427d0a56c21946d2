"""A file on its way to a client: its ETag, one range of it or all of it, in pieces, never whole in memory.

    return FileReply(await files.open_blob(blob), "image/jpeg", name="9m4e….jpg")

What the request's headers ask for is decided by `wanted`, which is pure.
"""

from __future__ import annotations

import re
from enum import Enum, auto

import msgspec
from litestar.types import Receive, Scope, Send

from holdfast.blobs import Download
from holdfast.errors import RangeNotSatisfiable
from holdfast.http.envelope import refusal
from holdfast.http.handlers import Ready
from holdfast.http.visit import Visit, visit

_RANGE = re.compile(r"bytes=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*\Z", re.ASCII | re.I)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")

Header = tuple[bytes, bytes]


class Nothing(Enum):
    UNCHANGED = auto()
    """304: the client has it."""
    OUTSIDE = auto()
    """416: the file does not have these bytes."""


class Part(msgspec.Struct, frozen=True):
    """Bytes from `start` up to `stop`."""

    start: int
    stop: int
    whole: bool


def wanted(
    size: int, etag: str, *, if_none_match: str | None, range_: str | None, if_range: str | None
) -> Part | Nothing:
    """What to send. More than one range, or one that cannot be understood, is answered with everything."""
    if if_none_match is not None and _names(if_none_match, etag):
        return Nothing.UNCHANGED
    everything = Part(0, size, whole=True)
    if range_ is None or (if_range is not None and if_range.strip() != etag):
        return everything
    found = _RANGE.match(range_.strip())
    if found is None or found.groups() == ("", ""):
        return everything
    first, last = found.groups()
    if not first:  # the last so many bytes
        length = min(int(last), size)
        return Part(size - length, size, whole=False) if length else Nothing.OUTSIDE
    start = int(first)
    if last and int(last) < start:
        return everything
    if start >= size:
        return Nothing.OUTSIDE
    return Part(start, min(int(last) + 1, size) if last else size, whole=False)


def _names(header: str, etag: str) -> bool:
    """RFC 9110, 13.1.2: any of the tags, compared weakly."""
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


class FileReply(Ready):
    """Sends an opened download, and closes it."""

    __slots__ = ("_download", "_mime", "_name")

    def __init__(self, download: Download, mime: str, *, name: str) -> None:
        self._download = download
        self._mime = mime
        self._name = _UNSAFE.sub("_", name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = visit()
        async with self._download as file:
            part = wanted(
                file.size,
                file.etag,
                if_none_match=here.header(b"if-none-match"),
                range_=here.header(b"range"),
                if_range=here.header(b"if-range"),
            )
            match part:
                case Nothing.UNCHANGED:
                    await _send(here, 304, self._tag(), b"")
                case Nothing.OUTSIDE:
                    said = refusal(RangeNotSatisfiable(), here.scope["path"], here.request_id)
                    headers = [
                        (b"content-type", b"application/json"),
                        (b"content-range", b"bytes */%d" % file.size),
                    ]
                    await _send(here, 416, headers, msgspec.json.encode(said.body))
                case Part():
                    await self._send_part(here, part)

    def _tag(self) -> list[Header]:
        return [
            (b"etag", self._download.etag.encode()),
            (b"accept-ranges", b"bytes"),
            (b"cache-control", b"private, no-cache"),  # whoever loses access must not be served from a cache
        ]

    async def _send_part(self, here: Visit, part: Part) -> None:
        headers = [
            *self._tag(),
            (b"content-type", self._mime.encode("latin-1")),
            (b"x-content-type-options", b"nosniff"),
            (b"content-disposition", f'inline; filename="{self._name}"'.encode("latin-1")),
            (b"content-length", b"%d" % (part.stop - part.start)),
        ]
        if not part.whole:
            headers.append(
                (b"content-range", b"bytes %d-%d/%d" % (part.start, part.stop - 1, self._download.size))
            )
        await _start(here, 200 if part.whole else 206, headers)
        async for piece in self._download.stream(part.start, part.stop):
            here.sent += len(piece)
            await here.send({"type": "http.response.body", "body": piece, "more_body": True})
        await here.send({"type": "http.response.body", "body": b"", "more_body": False})


async def _start(here: Visit, status: int, headers: list[Header]) -> None:
    here.status = status
    headers.append((b"x-request-id", here.request_id.encode()))
    await here.send({"type": "http.response.start", "status": status, "headers": headers})


async def _send(here: Visit, status: int, headers: list[Header], body: bytes) -> None:
    await _start(here, status, headers)
    here.sent = len(body)
    await here.send({"type": "http.response.body", "body": body, "more_body": False})
