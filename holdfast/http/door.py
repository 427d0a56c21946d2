"""Around every request: its id, who is calling, the rate limit, the clock on its body, what is counted.

Runs for each request, so it counts its microseconds: plain ASGI, no layers. What it finds is a `Visit`.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from itertools import count
from typing import cast

import msgspec
from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import (
    ASGIApp,
    HTTPReceiveMessage,
    HTTPRequestEvent,
    HTTPScope,
    Message,
    Receive,
    Scope,
    Send,
)

from holdfast.addresses import neighbourhood
from holdfast.clock import Clock
from holdfast.errors import HoldfastError, TooManyRequests
from holdfast.http.arriving import Body
from holdfast.http.compression import Inflater, inflater
from holdfast.http.envelope import refusal
from holdfast.http.express import Express
from holdfast.http.patience import Patience
from holdfast.http.rate import RateLimit
from holdfast.http.visit import Authenticate, Caller, Visit
from holdfast.log import request_context
from holdfast.metrics import Metrics, Series
from holdfast.settings import Http, Limits

_OWN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_UNLIMITED = frozenset({"/healthz", "/readyz", "/metrics"})


class Door:
    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticate,
        clock: Clock,
        metrics: Metrics,
        http: Http,
        limits: Limits,
    ) -> None:
        self._app = Express(app) if isinstance(app, Litestar) else app
        self._known = authenticate.known
        self._verify = authenticate.verify
        self._patience = Patience(http.body_timeout)
        self._trust_proxy = http.trust_proxy
        self._by_user = RateLimit(limits.requests, clock)
        self._by_library_user = RateLimit(limits.library_requests, clock)
        self._by_address = RateLimit(limits.anonymous_requests, clock)
        self._prefix = secrets.token_hex(4)
        self._numbers = count(1)
        self._requests = metrics.histogram(
            "holdfast_http_request_seconds", "Time of an HTTP request", "route", "method", "status"
        )
        self._bytes = metrics.counter("holdfast_http_bytes", "Bytes of HTTP bodies, as they travelled", "way")
        self._series: Mapping[tuple[object, str, int], Series] = {}
        self._open = 0
        metrics.gauge("holdfast_http_open_requests", "HTTP requests under way", lambda: self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        name, token, address, encoding = self._read_headers(scope)
        here = Visit(scope, send, name, address)
        context = request_context.set(here)
        if scope["method"] in _WITH_BODY:
            body = Body(receive, send, here, self._patience)
            receive = cast("Receive", body.receive)
            here.send = send = body.send
            if encoding is not None:
                receive = _inflated(receive, encoding)

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                here.status = message["status"]
                headers = cast("list[tuple[bytes, bytes]]", message["headers"])
                headers.append((b"x-request-id", name.encode()))
            elif message["type"] == "http.response.body":
                here.sent += len(message["body"])
            await send(message)

        self._open += 1
        try:
            if token is not None:
                here.who = await self._verified(token)
            refused = self._limit(scope["path"], here.who, address)
            if refused is None:
                await self._app(scope, receive, reply)
            else:
                await _refuse(refused, scope["path"], name, reply)
        finally:
            self._open -= 1
            request_context.reset(context)
            self._bytes.add("in", amount=here.received)
            self._bytes.add("out", amount=here.sent)
            self._observe(
                scope.get("path_template"), scope["method"], here.status, time.perf_counter() - started
            )

    def _read_headers(self, scope: HTTPScope) -> tuple[str, str | None, str, str | None]:
        name = token = encoding = forwarded = None
        for key, value in scope["headers"]:
            if key == b"authorization":
                if value[:7].lower() == b"bearer ":
                    token = value[7:].strip().decode("latin-1")
            elif key == b"content-encoding":
                if value != b"identity":
                    encoding = value.decode("latin-1")
            elif key == b"x-request-id":
                if _OWN_ID.match(value):
                    name = value.decode("ascii")
            elif key == b"x-forwarded-for":
                forwarded = value
        client = scope.get("client")
        address = client[0] if client else ""
        if self._trust_proxy and forwarded is not None:
            address = forwarded.rpartition(b",")[2].strip().decode("latin-1")
        return name or f"{self._prefix}-{next(self._numbers):x}", token, address, encoding

    async def _verified(self, token: str) -> Caller | HoldfastError:
        """The caller, or the error to raise when a handler asks for him."""
        try:
            return self._known(token) or await self._verify(token)
        except HoldfastError as error:
            return error

    def _limit(self, path: str, caller: Caller | HoldfastError | None, address: str) -> HoldfastError | None:
        try:
            if caller is None or isinstance(caller, HoldfastError):
                if path not in _UNLIMITED:
                    self._by_address.spend(neighbourhood(address))
            elif path.startswith("/library/"):
                self._by_library_user.spend(caller.user_id)
            else:
                self._by_user.spend(caller.user_id)
        except TooManyRequests as error:
            return error
        return None

    def _observe(self, route: object, method: str, status: int, seconds: float) -> None:
        series = self._series.get((route, method, status))
        if series is None:
            series = self._requests.series(str(route or "none"), method, str(status))
            cast("dict[tuple[object, str, int], Series]", self._series)[route, method, status] = series
        series.observe(seconds)


def _part(piece: bytes, *, more: bool) -> HTTPRequestEvent:
    return {"type": "http.request", "body": piece, "more_body": more}


def _inflated(receive: Receive, encoding: str) -> Receive:
    """The body unpacked, one piece for each time that somebody asks: so the limit of its route holds for a bomb too."""
    unpack: Inflater | None = None
    pieces: Iterator[bytes] = iter(())
    last = False

    async def receive_unpacked() -> HTTPReceiveMessage:
        nonlocal unpack, pieces, last
        if unpack is None:
            unpack = inflater(encoding)
        while True:
            piece = next(pieces, None)
            if piece is not None:
                return _part(piece, more=True)
            if last:
                unpack.finish()
                return _part(b"", more=False)
            message = await receive()
            if message["type"] != "http.request":
                return cast("HTTPReceiveMessage", message)
            last = not message["more_body"]
            pieces = unpack.feed(message["body"])

    return cast("Receive", receive_unpacked)


async def _refuse(error: HoldfastError, path: str, name: str, send: Send) -> None:
    said = refusal(error, path, name)
    headers = [(key.lower().encode(), value.encode()) for key, value in said.headers.items()]
    headers.append((b"content-type", b"application/json"))
    body = msgspec.json.encode(said.body)
    await send(cast("Message", {"type": "http.response.start", "status": said.status, "headers": headers}))
    await send(cast("Message", {"type": "http.response.body", "body": body, "more_body": False}))
