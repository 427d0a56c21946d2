"""`/admin/broker/…`: what the operator may ask and do, with an administrator's token.

Client ids and topics are query parameters: they may hold `/`, and anything else.
"""

from __future__ import annotations

from typing import Annotated

from litestar import Router
from litestar.params import QueryParameter

from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.broker.operator import (
    PAGE,
    ClearRetained,
    DeleteSession,
    Done,
    Kick,
    OneSession,
    Operator,
    Overview,
    Page,
    Queue,
    Retained,
    Sessions,
    Subscriptions,
)
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import delete, get, post
from holdfast.http.visit import admin

LONGEST = 65_535

ClientId = Annotated[str, QueryParameter(name="client_id", min_length=1, max_length=LONGEST)]
Topic = Annotated[str, QueryParameter(name="topic", min_length=1, max_length=LONGEST)]
Filter = Annotated[str, QueryParameter(name="filter", min_length=1, max_length=LONGEST)]
After = Annotated[str, QueryParameter(name="after", max_length=LONGEST)]
Limit = Annotated[int, QueryParameter(name="limit", ge=1, le=10_000)]
ADMIN: list[dict[str, list[str]]] = [{"token": []}]


def router(operator: Operator) -> Router:
    @get("/admin/broker", summary="How much there is", security=ADMIN)
    async def overview() -> Answer[Overview]:
        """Counts of what there is, and of what was counted since the start."""
        admin()
        return answer(operator.overview())

    @get("/admin/broker/sessions", summary="All sessions", security=ADMIN)
    async def sessions(after: After = "", limit: Limit = PAGE) -> Answer[Page[SessionInfo]]:
        """By client id. `next` is the `after` of the page that follows."""
        admin()
        return answer(operator.sessions(Sessions(after, limit)))

    @get("/admin/broker/session", summary="One session", security=ADMIN)
    async def session(client_id: ClientId) -> Answer[SessionInfo]:
        admin()
        return answer(operator.session(OneSession(client_id)))

    @delete("/admin/broker/session", summary="Delete a session", status_code=200, security=ADMIN)
    async def delete_session(client_id: ClientId) -> Answer[Done]:
        """Its client is disconnected; its subscriptions and its queue are gone."""
        admin()
        return answer(await operator.delete_session(DeleteSession(client_id)))

    @post("/admin/broker/kick", summary="Disconnect a client", status_code=200, security=ADMIN)
    async def kick(client_id: ClientId) -> Answer[Done]:
        """Its session stays, and it may connect again."""
        admin()
        return answer(await operator.kick(Kick(client_id)))

    @get("/admin/broker/subscriptions", summary="Subscriptions", security=ADMIN)
    async def subscriptions(
        client_id: Annotated[str, QueryParameter(name="client_id", max_length=LONGEST)] = "",
        after: After = "",
        limit: Limit = PAGE,
    ) -> Answer[Page[SubscriptionInfo]]:
        """Of one client, or of all, client by client."""
        admin()
        return answer(operator.subscriptions(Subscriptions(client_id, after, limit)))

    @get("/admin/broker/retained", summary="Retained messages", security=ADMIN)
    async def retained(filter_: Filter = "#", limit: Limit = PAGE) -> Answer[Page[RetainedInfo]]:
        """Those that a filter matches, without their payload."""
        admin()
        return answer(operator.retained(Retained(filter_, limit)))

    @delete("/admin/broker/retained", summary="Clear a retained message", status_code=200, security=ADMIN)
    async def clear_retained(topic: Topic) -> Answer[Done]:
        admin()
        return answer(await operator.clear_retained(ClearRetained(topic)))

    @get("/admin/broker/queue", summary="What waits for a client", security=ADMIN)
    async def queue(client_id: ClientId, limit: Limit = 100) -> Answer[Page[QueuedInfo]]:
        """The oldest messages of a session's queue, without their payload."""
        admin()
        return answer(await operator.queue(Queue(client_id, limit)))

    return Router(
        "/",
        route_handlers=[
            overview,
            sessions,
            session,
            delete_session,
            kick,
            subscriptions,
            retained,
            clear_retained,
            queue,
        ],
        tags=["broker"],
    )
