"""`/user/basic`: the names behind ids; `/call/record/cursor`: who called whom."""

from __future__ import annotations

from typing import Annotated

from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter

from holdfast.accounts import queries as accounts
from holdfast.chat import call_actions
from holdfast.chat.http.request import TOKEN, Ids, Limit, an_id, ids, me
from holdfast.chat.http.shapes import CallPage, UserBasic, call_item
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get
from holdfast.ids import MAX_ID
from holdfast.store import Database, Snapshot

LastId = Annotated[str | None, QueryParameter(name="lastId", description="`nextLastId` of the page before")]


def _named(view: Snapshot, users: list[int]) -> list[UserBasic]:
    found = [accounts.user(view, user) for user in users]
    return [UserBasic(str(user.id), user.name) for user in found if user is not None]


def handlers(db: Database) -> list[HTTPRouteHandler]:
    @get("/user/basic", summary="Names of users", security=TOKEN)
    async def basic(ids_: Ids) -> Answer[list[UserBasic]]:
        """Ids that nobody has are left out."""
        me()
        return answer(await db.read(_named, ids("ids", ids_)))

    @get("/call/record/cursor", summary="My calls, the latest first", security=TOKEN)
    async def calls(limit: Limit = 20, last_id: LastId = None) -> Answer[CallPage]:
        user = me()
        below = MAX_ID if last_id is None else an_id("lastId", last_id)
        found = await db.read(call_actions.records, user, below, limit + 1)
        items = [call_item(call) for call in found[:limit]]
        has_more = len(found) > limit
        return answer(CallPage(items, has_more, items[-1].call_id if has_more else None))

    return [basic, calls]
