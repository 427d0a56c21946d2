"""The short way to a handler that needs nothing of Litestar: found by method and path, its parameters read, called.

Litestar builds the routes and documents them, and it answers whatever is less simple: a path with parameters, a header
that a handler asks for, a query that is not as it should be (which it explains). Half of a small request went there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qsl

import msgspec
from litestar import Litestar, Response
from litestar.enums import MediaType
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import HTTPReceiveMessage, HTTPRequestEvent, HTTPScope, Receive, Scope, Send

from holdfast.errors import TooLarge
from holdfast.http.body import StrictJson, read_json
from holdfast.http.envelope import refused
from holdfast.http.handlers import Ready, Refused, Reply, is_quick
from holdfast.http.visit import visit

LONGEST_QUERY = 256
"""Bytes of one that is remembered: what strangers send must not fill the memory."""

Handle = Callable[..., Awaitable[object]]
Arguments = Mapping[str, object]


class _Way:
    """How one handler is reached."""

    def __init__(self, template: str, handler: HTTPRouteHandler) -> None:
        self._template = template
        self._handle = cast("Handle", handler.fn)
        self._status = handler.status_code

    async def __call__(self, app: Litestar, scope: HTTPScope, receive: Receive, send: Send) -> None:
        scope["path_template"] = self._template
        ready: Ready
        try:
            arguments = await self._arguments(scope, receive)
            if arguments is None:
                await app(scope, self.receive_again(receive), send)
                return
            value = await self._handle(**arguments)
            ready = value if isinstance(value, Ready) else Reply(self._status, value)
        except Exception as error:  # noqa: BLE001 - as Litestar's handler of all exceptions does
            ready = Refused(refused(error, scope["path"], visit().request_id))
        await ready(scope, receive, send)

    def receive_again(self, receive: Receive) -> Receive:
        """For whoever answers instead of us: what we have read of the body already."""
        return receive

    async def _arguments(self, scope: HTTPScope, receive: Receive) -> Arguments | None:
        """None: Litestar may say what is wrong with them."""
        return {}


class _WithBody(_Way):
    def __init__(self, template: str, handler: HTTPRouteHandler) -> None:
        super().__init__(template, handler)
        self._kind = cast("type", handler.parsed_fn_signature.parameters["data"].annotation)
        self._most = handler.resolve_request_max_body_size()

    async def _arguments(self, scope: HTTPScope, receive: Receive) -> Arguments | None:
        body = await _body(receive, self._most)
        return {"data": read_json(body, self._kind)} if body else None

    def receive_again(self, receive: Receive) -> Receive:
        return _empty


class _WithQuery(_Way):
    def __init__(self, template: str, handler: HTTPRouteHandler, names: Mapping[str, str]) -> None:
        super().__init__(template, handler)
        self._names = names
        self._signature = handler.signature_model

    async def _arguments(self, scope: HTTPScope, receive: Receive) -> Arguments | None:
        query = scope["query_string"]
        if len(query) > LONGEST_QUERY:
            return None
        given = _pairs(query)
        named = {self._names[key]: value for key, value in given if key in self._names}
        if len(named) < sum(key in self._names for key, _ in given) or "" in named.values():
            return None  # one was given twice, or left empty
        try:
            return cast("Arguments", msgspec.convert(named, self._signature, strict=False).to_dict())
        except msgspec.ValidationError:
            return None


@lru_cache(maxsize=1_024)
def _pairs(query: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(parse_qsl(query.decode("latin-1"), keep_blank_values=True))


async def _empty() -> HTTPRequestEvent:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _body(receive: Receive, most: int | None) -> bytes:
    body = b""
    while True:
        message = cast("HTTPReceiveMessage", await receive())
        part = cast("HTTPRequestEvent", message)
        body = body + part["body"] if body else part["body"]
        if most is not None and len(body) > most:
            raise TooLarge
        if not part.get("more_body", False):
            return body


class Express:
    def __init__(self, app: Litestar) -> None:
        self._app = app
        self._ways: dict[tuple[str, str], _Way] = {}
        for route in app.routes:
            if isinstance(route, HTTPRoute) and not route.path_parameters:
                self._add(route)

    def _add(self, route: HTTPRoute) -> None:
        for method, (handler, model) in route.route_handler_map.items():
            way = _way(route.path_format, handler, model)
            if way is not None:
                for path in (route.path, f"{route.path}/"):
                    self._ways[method, path] = way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        here = cast("HTTPScope", scope)
        way = self._ways.get((here["method"], here["path"]))
        if way is None:
            await self._app(scope, receive, send)
        else:
            await way(self._app, here, receive, send)


def _way(template: str, handler: HTTPRouteHandler, model: Any) -> _Way | None:
    asks_for_more = (
        model.expected_cookie_params,
        model.expected_form_data,
        model.expected_header_params,
        model.expected_msgpack_data,
        model.expected_reserved_kwargs - {"data"},
        model.dependency_batches,
        model.sequence_query_parameter_names,
        handler.resolve_guards(),
    )
    if any(asks_for_more) or not is_quick(handler) or handler.has_sync_callable:
        return None
    if handler.media_type != MediaType.JSON or _may_be_a_response(handler):
        return None
    names = {param.field_alias: param.field_name for param in model.expected_query_params}
    if model.expected_data_dto is None:
        return _WithQuery(template, handler, names) if names else _Way(template, handler)
    if names or not issubclass(model.expected_data_dto, StrictJson):
        return None
    return _WithBody(template, handler)


def _may_be_a_response(handler: HTTPRouteHandler) -> bool:
    returned = handler.parsed_fn_signature.return_type
    return (
        returned.annotation is Any
        or returned.is_subclass_of(Response)
        or returned.has_inner_subclass_of(Response)
    )
