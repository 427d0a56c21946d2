"""`/user/basic`: the names behind ids."""

from __future__ import annotations

from litestar.handlers import HTTPRouteHandler

from holdfast.accounts import queries as accounts
from holdfast.chat.http.request import TOKEN, Ids, ids, me
from holdfast.chat.http.shapes import UserBasic
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get
from holdfast.store import Database, Snapshot


def _named(view: Snapshot, users: list[int]) -> list[UserBasic]:
    found = [accounts.user(view, user) for user in users]
    return [UserBasic(str(user.id), user.name) for user in found if user is not None]


def handlers(db: Database) -> list[HTTPRouteHandler]:
    @get("/user/basic", summary="Names of users", security=TOKEN)
    async def basic(ids_: Ids) -> Answer[list[UserBasic]]:
        """Ids that nobody has are left out."""
        me()
        return answer(await db.read(_named, ids("ids", ids_)))

    return [basic]
