"""Answers that are sent piece by piece, compressed for whoever takes that. Memory holds a piece or two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from litestar.types import Receive, Scope, Send

from holdfast.http.compression import WORTH_IT, Packer, chosen, compressed, packer
from holdfast.http.handlers import Ready
from holdfast.http.visit import visit

SMALL = 64 * 1024  # bytes that are compressed at once, on the loop


class JsonPieces(Ready):
    """A JSON document of `size` bytes, whose `pieces` may be slow to read and are taken on a thread."""

    def __init__(self, pieces: Iterator[bytes], size: int, close: Callable[[], None]) -> None:
        self._pieces = pieces
        self._size = size
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._send()
        finally:
            self._close()

    async def _send(self) -> None:
        here = visit()
        offered = here.header(b"accept-encoding")
        encoding = chosen(offered) if offered and self._size >= WORTH_IT else None
        headers = [(b"content-type", b"application/json"), (b"x-request-id", here.request_id.encode())]
        if encoding is not None:
            headers += [(b"content-encoding", encoding.encode()), (b"vary", b"accept-encoding")]
        pieces = self._pieces
        if self._size <= SMALL:
            body = b"".join(pieces)
            if encoding is not None:
                body = compressed(body, encoding)
            headers.append((b"content-length", b"%d" % len(body)))
            pieces = iter((body,))
        elif encoding is None:
            headers.append((b"content-length", b"%d" % self._size))
        else:
            pieces = _packed(pieces, packer(encoding))
        here.status = 200
        await here.send({"type": "http.response.start", "status": 200, "headers": headers})
        while piece := (
            next(pieces, b"") if self._size <= SMALL else await asyncio.to_thread(next, pieces, b"")
        ):
            here.sent += len(piece)
            await here.send({"type": "http.response.body", "body": piece, "more_body": True})
        await here.send({"type": "http.response.body", "body": b"", "more_body": False})


def _packed(pieces: Iterator[bytes], stream: Packer) -> Iterator[bytes]:
    for piece in pieces:
        if packed := stream.compress(piece):
            yield packed
    yield stream.flush()
