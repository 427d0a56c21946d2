"""Answers without a body: a status and its headers."""

from __future__ import annotations

from collections.abc import Mapping

from litestar.types import Receive, Scope, Send

from holdfast.http.handlers import Ready
from holdfast.http.visit import visit


class Bare(Ready):
    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self._status = status
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = visit()
        here.status = self._status
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in self._headers.items()]
        headers.append((b"x-request-id", here.request_id.encode()))
        if self._status != 204:
            headers.append((b"content-length", b"0"))
        await here.send({"type": "http.response.start", "status": self._status, "headers": headers})
        await here.send({"type": "http.response.body", "body": b"", "more_body": False})
