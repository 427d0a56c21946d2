"""The shape of answers: `{"ok": true, "code": 0, "message": "ok", "data": …, "ts": …}`, and errors likewise.

Errors of the library and the files have their own shape (`{success, conflict, errorMessage, …}`), chosen by path.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec
from litestar import MediaType, Response
from litestar.exceptions import HTTPException, MethodNotAllowedException, ValidationException

from holdfast.errors import (
    ActionFailed,
    Forbidden,
    HoldfastError,
    Invalid,
    InvalidField,
    Malformed,
    MethodNotAllowed,
    NotFound,
    NotLoggedIn,
    TooLarge,
    TooManyRequests,
    Unavailable,
    VersionConflict,
    WrongType,
)
from holdfast.http.visit import AnyRequest, visit
from holdfast.log import get_logger

T = TypeVar("T")

LIBRARY_STYLE = ("/library/", "/file/")

log = get_logger("http")

_encode = msgspec.json.Encoder(decimal_format="number").encode


class Answer(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A successful answer."""

    ok: bool = True
    code: int = 0
    message: str = "ok"
    data: T
    ts: int


def answer(data: T) -> Answer[T]:
    return Answer(data=data, ts=time.time_ns() // 1_000_000)


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer that says what went wrong: `code` and `reason` are stable, `message` is for a person."""

    ok: bool
    code: int
    reason: str
    message: str
    ts: int
    data: object | None = None


class LibraryFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """The same for the library and the files, in the words of its clients."""

    success: bool
    conflict: bool
    errorMessage: str  # noqa: N815 - the wire's word
    code: int
    reason: str
    entityId: str | None = None  # noqa: N815 - the wire's word
    serverLibraryVersion: int | None = None  # noqa: N815 - the wire's word
    reset: bool | None = None


_BY_STATUS: Mapping[int, type[HoldfastError]] = {
    400: Malformed,
    401: NotLoggedIn,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    413: TooLarge,
    415: WrongType,
    429: TooManyRequests,
    503: Unavailable,
}


_MISSING = re.compile(r"Missing required \w+ parameter '(\w+)'")


def as_ours(error: Exception) -> HoldfastError:
    """Any exception as one of our errors; what nobody foresaw becomes a 500 that tells nothing of our insides."""
    match error:
        case HoldfastError():
            return ActionFailed() if error.status == 500 else error
        case ValidationException():
            return _invalid(error)
        case HTTPException():
            kind = _BY_STATUS.get(error.status_code)
            if kind is None:
                kind = Invalid if 400 <= error.status_code < 500 else ActionFailed
            return kind()
        case _:
            return ActionFailed()


def _invalid(error: ValidationException) -> HoldfastError:
    for found in error.extra if isinstance(error.extra, list) else ():
        if isinstance(found, dict) and found.get("key"):
            return InvalidField(str(found["key"]), str(found.get("message", "is not valid")))
    missing = _MISSING.match(error.detail)
    return Malformed() if missing is None else InvalidField(missing[1], "is missing")


class Refusal(msgspec.Struct, frozen=True):
    """An error, ready to be sent."""

    status: int
    headers: dict[str, str]
    body: Failure | LibraryFailure


def refusal(error: HoldfastError, path: str, name: str) -> Refusal:
    """`error` in the style of the routes at `path`; `name` is the request's id."""
    headers = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.status == 401:
        headers["WWW-Authenticate"] = f'Bearer error="{error.reason}"'
    data = {"request_id": name} if isinstance(error, ActionFailed) else error.data
    if path.startswith(LIBRARY_STYLE):
        known = data if isinstance(data, dict) else {}
        library = LibraryFailure(
            False,
            isinstance(error, VersionConflict),
            error.message,
            error.code(),
            error.reason,
            known.get("entityId"),
            known.get("serverLibraryVersion"),
            known.get("reset"),
        )
        return Refusal(error.status, headers, library)
    ts = time.time_ns() // 1_000_000
    return Refusal(error.status, headers, Failure(False, error.code(), error.reason, error.message, ts, data))


def refused(error: Exception, path: str, name: str) -> Refusal:
    """Whatever was raised while a request was handled; what nobody foresaw is logged under the request's id."""
    ours = as_ours(error)
    if ours.status >= 500 and not isinstance(ours, Unavailable):
        log.error("request_failed", request_id=name, path=path, exc_info=error)
    return refusal(ours, path, name)


def failed(request: AnyRequest, error: Exception) -> Response[bytes]:
    """The exception handler of every route."""
    said = refused(error, request.scope["path"], visit().request_id)
    if isinstance(error, MethodNotAllowedException) and error.headers:
        said.headers.update({key: value for key, value in error.headers.items() if key.lower() == "allow"})
    body = _encode(said.body)
    return Response(body, status_code=said.status, headers=said.headers, media_type=MediaType.JSON)
