"""`/library/pull` and `/library/push`: parses, asks `Library`, answers."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Router
from litestar.params import JSONBody, QueryParameter

from holdfast.errors import Forbidden, InvalidField
from holdfast.feed import Checksum
from holdfast.http.body import StrictJson
from holdfast.http.handlers import get, post
from holdfast.http.idempotency import key_of
from holdfast.http.stream import JsonPieces
from holdfast.http.visit import AnyRequest, caller, visit
from holdfast.ids import MAX_ID
from holdfast.library import examples, wire
from holdfast.library.library import Library
from holdfast.library.model import Pushed
from holdfast.library.pull import Asked
from holdfast.library.rules import fields_of
from holdfast.library.wire import PullAnswer, PushRequest
from holdfast.log import get_logger
from holdfast.settings import Limits

log = get_logger("library")

UserId = Annotated[
    int | None,
    QueryParameter(name="userId", ge=1, le=MAX_ID, description="must be the token's user", required=False),
]


class PushJson(StrictJson[Any]):
    """As everywhere, but what is wrong names the entity that it is wrong in."""

    def decode_bytes(self, value: bytes) -> PushRequest:
        return wire.decoded(value)


def user_named(user_id: int | None) -> int:
    """The caller, who may have named himself, but nobody else."""
    here = caller().user_id
    if user_id is not None and user_id != here:
        log.warning("foreign_library", userId=here, asked=user_id, path=visit().scope["path"])
        raise Forbidden("userId is not the user of this token.")
    return here


def router(library: Library, limits: Limits) -> Router:
    fields = fields_of(limits)

    @get(
        "/library/pull",
        summary="What has changed since",
        security=[{"token": []}],
        responses=examples.ANSWERS_OF_PULL,
    )
    async def pull(
        user_id: UserId = None,
        since: Annotated[
            int, QueryParameter(ge=0, le=MAX_ID, description="the version you have; 0 pulls everything")
        ] = 0,
        limit: Annotated[
            int | None, QueryParameter(ge=1, required=False, description="a page of so many entities")
        ] = None,
        epoch: Annotated[
            str | None, QueryParameter(max_length=100, required=False, description="as the last pull gave it")
        ] = None,
    ) -> PullAnswer:
        """Without `limit` everything comes in one answer. A page may also carry parents that come again later, so that
        no child is without one. `isFullSync`: forget what you have, this is all there is."""
        user = user_named(user_id)
        if limit is not None and limit > limits.page:
            raise InvalidField("limit", f"must be at most {limits.page}")
        found = await library.pull(Asked(user, since, limit, epoch))
        return JsonPieces(found.pieces(), found.size, found.close)  # type: ignore[return-value]  # written already

    @get("/library/checksum", summary="Is my copy complete?", security=[{"token": []}])
    async def compare(user_id: UserId = None) -> Checksum:
        """For each living entity: the first 8 bytes (big-endian) of SHA-256 over `entityType`, `serverId` and `version`,
        separated by line feeds; `digest` is their sum modulo 2^64 in 16 hex digits."""
        return await library.checksum(user_named(user_id))

    @post(
        "/library/push",
        summary="Send what was changed",
        status_code=200,
        security=[{"token": []}],
        dto=PushJson,
        request_max_body_size=limits.push_body,
        responses=examples.ANSWERS_OF_PUSH,
        operation_class=examples.PushOperation,
    )
    async def push(request: AnyRequest, data: JSONBody[PushRequest], user_id: UserId = None) -> Pushed:
        """All of it or nothing, each change under a version of its own. 412: another device was first, pull and push
        again. Takes an `Idempotency-Key`."""
        user = user_named(user_id)
        key = None
        if visit().header(b"idempotency-key") is not None:
            key = key_of(user, await request.body())
        return await library.push(user, key, wire.checked(data, fields, limits.push_changes))

    return Router("/", route_handlers=[pull, compare, push], tags=["library"])
