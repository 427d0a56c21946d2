"""Who is calling, as the door found out; a handler asks with `caller(request)`."""

from __future__ import annotations

from typing import Protocol

import msgspec
from litestar import Request
from litestar.datastructures import State

from holdfast.errors import HoldfastError, NotLoggedIn

AnyRequest = Request[object, object, State]


class Caller(msgspec.Struct, frozen=True):
    """A user whose access token was verified for this request."""

    user_id: int
    session_version: int
    expires_at: float


class Authenticate(Protocol):
    """How `accounts` is asked; raises an error of the 401 family."""

    def known(self, token: bytes) -> Caller | None:
        """The caller, if this token was verified before and is still good: costs microseconds."""

    async def verify(self, token: bytes) -> Caller:
        """The caller, whatever it takes."""


def caller(request: AnyRequest) -> Caller:
    """The caller of this request, or a 401 that says what is wrong with the token."""
    found = request.scope.get("caller")
    if isinstance(found, Caller):
        return found
    if isinstance(found, HoldfastError):
        raise found
    raise NotLoggedIn


def client_address(request: AnyRequest) -> str:
    """The address the request came from, as `http.trust_proxy` has it."""
    return str(request.scope.get("client_address", ""))


def request_id(request: AnyRequest) -> str:
    return str(request.scope.get("request_id", ""))
