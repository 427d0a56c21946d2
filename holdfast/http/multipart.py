"""The file in a `multipart/form-data` body, as it streams in. Fields beside it are skipped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from email.message import Message

from multipart import (  # type: ignore[import-untyped]
    MultipartError,
    MultipartSegment,
    PushMultipartParser,
)

from holdfast.errors import Malformed

MULTIPART = "multipart/form-data"
FIELDS = 20


def boundary_in(content_type: str) -> str | None:
    """The boundary, when this is a multipart form."""
    header = Message()
    header["content-type"] = content_type
    if header.get_content_type() != MULTIPART:
        return None
    found = header.get_param("boundary")
    if not isinstance(found, str) or not found:
        raise Malformed("A multipart body needs a boundary in its Content-Type.")
    return found


async def file_in(chunks: AsyncIterator[bytes], boundary: str) -> AsyncIterator[bytes]:
    """The bytes of the first part that is a file. A body without one, or that was cut, is `Malformed`."""
    wanted = found = False
    try:
        with PushMultipartParser(boundary, max_segment_count=FIELDS) as parser:
            async for chunk in chunks:
                for part in parser.parse(chunk) if chunk and not parser.closed else ():
                    if isinstance(part, MultipartSegment):
                        wanted = not found and (part.filename is not None or part.name == "file")
                        found = found or wanted
                    elif wanted and part:
                        yield bytes(part)
    except (MultipartError, ValueError) as error:
        raise Malformed(f"The body is not a multipart form: {error}") from None
    if not found:
        raise Malformed("The multipart body holds no file.")
