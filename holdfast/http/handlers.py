"""`get`, `post`, `put`, `delete`, `patch`: Litestar's decorators with a shorter way from a value to the socket.

A handler that returns a value (not a `Response`) is answered by `Reply`: encoded once, sent as two ASGI messages.
Litestar's own way there costs about a third of a small request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

import msgspec
from litestar import Litestar, Request, Response
from litestar.datastructures import State
from litestar.dto import AbstractDTO
from litestar.enums import HttpMethod, MediaType
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Operation
from litestar.types import ASGIApp, ExceptionHandlersMap, Receive, Scope, Send

from holdfast.http.envelope import Refusal
from holdfast.http.visit import visit

_encode = msgspec.json.Encoder(decimal_format="number").encode
_JSON = (b"content-type", b"application/json")


class Ready:
    """An answer that needs nothing more from Litestar: it sends itself. A handler may return one instead of a value."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotImplementedError


class Reply(Ready):
    """A value on its way to the client."""

    __slots__ = ("_body", "_headers", "_status")

    def __init__(self, status: int, value: object, headers: Mapping[str, str] = {}) -> None:
        self._status = status
        self._body = _encode(value)
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = visit()
        here.status = self._status
        here.sent = len(self._body)
        headers = [
            _JSON,
            (b"content-length", b"%d" % len(self._body)),
            (b"x-request-id", here.request_id.encode()),
        ]
        for name, value in self._headers.items():
            headers.append((name.lower().encode(), value.encode()))
        await here.send({"type": "http.response.start", "status": self._status, "headers": headers})
        await here.send({"type": "http.response.body", "body": self._body, "more_body": False})


class Refused(Reply):
    """An error on its way to the client."""

    __slots__ = ()

    def __init__(self, said: Refusal) -> None:
        super().__init__(said.status, said.body, said.headers)


class _Quick(HTTPRouteHandler):
    _resolved: ExceptionHandlersMap | None = None

    def resolve_exception_handlers(self) -> ExceptionHandlersMap:
        """Litestar puts them together again for every request; once routes answer, they no longer change."""
        if self._resolved is None:
            self._resolved = super().resolve_exception_handlers()
        return self._resolved

    async def to_response(
        self, app: Litestar, data: object, request: Request[object, object, State]
    ) -> ASGIApp:
        if isinstance(data, Ready):
            return data
        if isinstance(data, Response) or self.media_type != MediaType.JSON:
            return await super().to_response(app, data, request)
        return Reply(self.status_code, data)


def is_quick(handler: HTTPRouteHandler) -> bool:
    """Whether it was made by one of ours."""
    return isinstance(handler, _Quick)


class _Options(TypedDict, total=False):
    """What our handlers say about themselves; Litestar knows more."""

    summary: str
    description: str
    status_code: int
    media_type: str
    tags: list[str]
    request_max_body_size: int | None
    include_in_schema: bool
    responses: dict[int, ResponseSpec]
    operation_id: str
    security: list[dict[str, list[str]]]
    dto: type[AbstractDTO[Any]]
    operation_class: type[Operation]


def get(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.GET, **options)


def post(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.POST, **options)


def put(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.PUT, **options)


def patch(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.PATCH, **options)


def delete(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.DELETE, **options)


def head(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.HEAD, **options)


def options(path: str, **options: Unpack[_Options]) -> HTTPRouteHandler:
    return _Quick(path, http_method=HttpMethod.OPTIONS, **options)
