"""A multipart body, part by part, as it arrives: for uploads, whose files go to disk and never into memory whole.

    async for part in parts(request):
        if part.name == "file":
            async for chunk in part.chunks: …
        else:
            text = await part.text()

Names that the client gives its files are not looked at: nothing here, nor behind it, makes a path of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from multipart import (  # type: ignore[import-untyped]
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
    parse_options_header,
)

from holdfast.errors import InvalidField, Malformed, TooLarge, WrongType
from holdfast.http.visit import AnyRequest

MOST_PARTS = 16
MOST_TEXT = 4_096


class Part:
    """One part of the body: read it before asking for the next one."""

    def __init__(self, name: str, chunks: AsyncIterator[bytes], *, is_file: bool) -> None:
        self.name = name
        self.chunks = chunks
        self.is_file = is_file

    async def text(self) -> str:
        """A small field."""
        gathered = b""
        async for chunk in self.chunks:
            gathered += chunk
            if len(gathered) > MOST_TEXT:
                raise TooLarge(f"the field {self.name!r} is larger than {MOST_TEXT} bytes")
        try:
            return gathered.decode()
        except UnicodeDecodeError:
            raise InvalidField(self.name, "must be UTF-8") from None


async def parts(request: AnyRequest, most: int) -> AsyncIterator[Part]:
    """The parts, in their order. `most`: bytes of all of them. Raises `Malformed` when the body is cut."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != "multipart/form-data":
        raise WrongType("Send the file as multipart/form-data.")
    events = _events(request, options.get("boundary", ""), most)
    async for event in events:
        if isinstance(event, MultipartSegment):
            part = Part(event.name or "", _chunks(events), is_file=event.filename is not None)
            yield part
            async for _ in part.chunks:  # whatever its reader left
                pass


async def _events(
    request: AnyRequest, boundary: str, most: int
) -> AsyncIterator[MultipartSegment | bytes | bytearray | None]:
    """Its errors reach whoever asks for the next event, which may be the reader of a part."""
    received = 0
    try:
        with PushMultipartParser(boundary, max_segment_count=MOST_PARTS) as parser:
            async for piece in request.stream():
                received += len(piece)
                if received > most:
                    raise TooLarge(f"the body is larger than the {most} bytes that are allowed")
                if piece and not parser.closed:  # what comes behind the last boundary means nothing
                    for event in parser.parse(piece):
                        yield event
    except MultipartError as error:
        raise Malformed(f"The body is not well-formed multipart/form-data: {error}") from None


async def _chunks(events: AsyncIterator[MultipartSegment | bytes | bytearray | None]) -> AsyncIterator[bytes]:
    """Up to the end of the part."""
    async for event in events:
        if event is None:
            return
        assert isinstance(event, bytes | bytearray), "a part begins only after another one has ended"
        yield bytes(event)
