"""The short way to a handler answers as Litestar does, whatever is asked; and it is the way that is taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
import msgspec
import pytest
from litestar import Litestar, Response, Router
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.types import ASGIApp, Receive, Scope, Send

from holdfast.clock import SystemClock
from holdfast.http.door import Door
from holdfast.http.envelope import Answer, answer
from holdfast.http.express import Express
from holdfast.http.handlers import get, post
from holdfast.http.routes import application
from holdfast.metrics import Metrics
from holdfast.settings import Http, Limits
from tests.http.conftest import HANDLERS, Doormen

Since = Annotated[int, QueryParameter(description="where to begin")]
Limit = Annotated[int, QueryParameter(description="how many")]
Named = Annotated[str | None, QueryParameter(name="from", description="a word")]
LIMITS = Limits(json_body=200)


class Pair(msgspec.Struct, frozen=True):
    left: int
    right: str = "none"


@get("/query")
async def query(since: Since, from_: Named = None, limit: Limit = 10) -> Answer[list[object]]:
    return answer([since, from_, limit])


@post("/pair")
async def pair(data: JSONBody[Pair]) -> Answer[Pair]:
    return answer(data)


@post("/pair/{number:int}")
async def numbered(number: FromPath[int], data: JSONBody[Pair]) -> Answer[Pair]:
    return answer(data)


@post("/both")
async def both(data: JSONBody[Pair], since: Since) -> Answer[list[object]]:
    return answer([since, data])


@get("/plain")
async def plain() -> Response[str]:
    return Response("plain", media_type="text/plain")


def made() -> Litestar:
    return application([Router("/", route_handlers=[*HANDLERS, query, pair, numbered, both, plain])], LIMITS)


@asynccontextmanager
async def client(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    door = Door(app, Doormen(), SystemClock(), Metrics(), Http(), LIMITS)
    transport = httpx.ASGITransport(door)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://house") as made:
        yield made


def litestar_alone() -> ASGIApp:
    app = made()

    async def plainly(scope: Scope, receive: Receive, send: Send) -> None:
        await app(scope, receive, send)

    return plainly


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/me", None),
        ("GET", "/me/", None),
        ("GET", "//me", None),
        ("HEAD", "/me", None),
        ("DELETE", "/me", None),
        ("GET", "/nowhere", None),
        ("GET", "/number/7", None),
        ("GET", "/number/seven", None),
        ("GET", "/admin", None),
        ("GET", "/plain", None),
        ("GET", "/mistake", None),
        ("GET", "/known-mistake", None),
        ("GET", "/query?since=5", None),
        ("GET", "/query/?since=5&from=a%20b%2Bc+d&limit=3", None),
        ("GET", "/query?since=5&unknown=1&unknown=2", None),
        ("GET", "/query?since=5&from=%C3%A9", None),
        ("GET", "/query?since=5&from=", None),
        ("GET", "/query?since=5&from", None),
        ("GET", "/query?since=5&since=6", None),
        ("GET", "/query?since=five", None),
        ("GET", "/query?since=", None),
        ("GET", "/query?since=1.5", None),
        ("GET", "/query?since=99999999999999999999", None),
        ("GET", "/query", None),
        ("GET", "/query?from_=x&since=1", None),
        ("GET", f"/query?since=1&from={'x' * 300}", None),
        ("POST", "/pair", b'{"left":1}'),
        ("POST", "/pair/", b'{"left":1,"right":"x","more":[1]}'),
        ("POST", "/pair", b'{"left":"1"}'),
        ("POST", "/pair", b'{"left":1e3}'),
        ("POST", "/pair", b"{"),
        ("POST", "/pair", b"null"),
        ("POST", "/pair", b"\xff"),
        ("POST", "/pair", b""),
        ("POST", "/pair", None),
        ("POST", "/pair", b'{"left":1,"right":"' + b"x" * 200 + b'"}'),
        ("POST", "/pair/3", b'{"left":1}'),
        ("POST", "/library/echo", b'{"text":1}'),
        ("POST", "/both?since=3", b'{"left":1}'),
        ("POST", "/both", b'{"left":1}'),
    ],
)
async def test_an_answer_is_the_same_on_both_ways(method: str, path: str, body: bytes | None) -> None:
    said = []
    for app in (litestar_alone(), made()):
        async with client(app) as house:
            headers = {"Authorization": "Bearer ann", "X-Request-Id": "the-same"}
            answered = await house.request(method, path, content=body, headers=headers)
        headers = {name: value for name, value in answered.headers.items() if name != "content-length"}
        headers["allow"] = ", ".join(sorted(headers.get("allow", "").split(", ")))
        headers["content-type"] = headers.get("content-type", "").partition(";")[0]
        text = msgspec.json.decode(answered.content) if answered.content[:1] == b"{" else answered.text
        if isinstance(text, dict):
            text.pop("ts", None)
        said.append((answered.status_code, headers, text))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("method", "path", "is_short"),
    [
        ("GET", "/me", True),
        ("GET", "/me/", True),
        ("GET", "/query", True),
        ("POST", "/pair", True),
        ("POST", "/both", False),  # its parameters come from two places
        ("GET", "/plain", False),  # it answers with a response of Litestar's
        ("GET", "/openapi/json", False),
    ],
)
def test_the_short_way_is_for_handlers_that_need_nothing_of_litestar(
    method: str, path: str, is_short: bool
) -> None:
    assert ((method, path) in Express(made())._ways) is is_short
