"""A real HTTP server around a few small handlers: what the furniture promises, whatever room uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import httpx
import msgspec
import pytest
from litestar import Router
from litestar.params import FromPath, JSONBody
from litestar.types import Receive, Scope, Send

from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError, InvalidToken, StoreUnavailable
from holdfast.http.door import Door
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get, post
from holdfast.http.routes import application
from holdfast.http.server import HttpServer
from holdfast.http.visit import Caller, admin, caller, visit
from holdfast.metrics import Metrics
from holdfast.settings import Http, Limits


class Person(msgspec.Struct, frozen=True):
    user_id: int
    is_admin: bool = False


class Doormen:
    """Knows ann and the operator; a token that says `broken` meets a store that is away."""

    def known(self, token: str) -> Caller | None:
        return {"ann": Person(1), "operator": Person(2, is_admin=True)}.get(token)

    async def verify(self, token: str) -> Caller:
        if token == "broken":
            raise StoreUnavailable
        raise InvalidToken


class Note(msgspec.Struct, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=20)]
    stars: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    price: float = 0.0


@post("/echo", status_code=200)
async def echo(data: JSONBody[Note]) -> Answer[Note]:
    return answer(data)


@post("/library/echo", status_code=200)
async def library_echo(data: JSONBody[Note]) -> Answer[Note]:
    return answer(data)


@get("/me")
async def me() -> Answer[str]:
    return answer(str(caller().user_id))


@get("/admin")
async def for_admins() -> Answer[str]:
    return answer(str(admin().user_id))


@get("/address")
async def address() -> Answer[str]:
    return answer(visit().address)


@get("/number/{number:int}")
async def number(number: FromPath[int]) -> Answer[int]:
    return answer(number)


@get("/mistake")
async def mistake() -> Answer[str]:
    raise ZeroDivisionError("a secret of our insides")


@get("/known-mistake")
async def known_mistake() -> Answer[str]:
    raise HoldfastError("told to nobody")


HANDLERS = [echo, library_echo, me, for_admins, address, number, mistake, known_mistake]


class Served(msgspec.Struct, frozen=True):
    client: httpx.AsyncClient
    metrics: Metrics
    address: str


@asynccontextmanager
async def serving(http: Http = Http(), limits: Limits = Limits()) -> AsyncIterator[Served]:
    metrics = Metrics()
    server = HttpServer("127.0.0.1:0", http, metrics)
    door = Door(
        application([Router("/", route_handlers=HANDLERS)], limits),
        Doormen(),
        SystemClock(),
        metrics,
        http,
        limits,
    )

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        await door(scope, receive, send)

    await server.start(served)
    try:
        async with httpx.AsyncClient(base_url=f"http://{server.address}") as client:
            yield Served(client, metrics, server.address)
    finally:
        await server.stop()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as here:
        yield here
