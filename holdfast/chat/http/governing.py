"""Groups and who is in them: `/group/*` but for the lists of messages."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from holdfast.chat import group_actions, group_queries
from holdfast.chat.group_actions import NewGroup
from holdfast.chat.http.request import TOKEN, GroupId, Ids, Limit, an_id, ids, me, number
from holdfast.chat.http.shapes import (
    GroupBasic,
    GroupProfile,
    MemberPage,
    UserId,
    group_basic,
    group_profile,
    member_item,
)
from holdfast.chat.model import MUTED_FOR_EVER
from holdfast.clock import Clock
from holdfast.errors import InvalidField
from holdfast.http.envelope import Answer, answer
from holdfast.http.handlers import get, post
from holdfast.http.idempotency import key_of
from holdfast.http.rate import RateLimit
from holdfast.ids import IdMaker
from holdfast.settings import Limits
from holdfast.settings.chat import Chat
from holdfast.store import Database

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"  # what cannot be taken for another
CODE_LENGTH = 10
TRIES_A_MINUTE = 20  # codes that one user may try
MOST_AT_CREATION = 500
_encode = msgspec.json.encode

TextId = Annotated[str, Meta(max_length=19, examples=["7301444405550000"])]
Code = Annotated[str, Meta(max_length=64, examples=["7KQ2M9XBAC"])]


class Creating(Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(min_length=1, max_length=1_000, examples=["Choir"])]
    member_user_ids: Annotated[list[TextId], Meta(max_length=MOST_AT_CREATION)] = []


class Joining(Struct, frozen=True, rename="camel"):
    group_code: Code


class InGroup(Struct, frozen=True, rename="camel"):
    group_id: TextId


class OfMember(Struct, frozen=True, rename="camel"):
    group_id: TextId
    user_id: UserId


class SettingAdmin(Struct, frozen=True, rename="camel"):
    group_id: TextId
    user_id: UserId
    is_admin: bool = True


class Muting(Struct, frozen=True, rename="camel"):
    """0 lifts it, -1 is until somebody lifts it."""

    group_id: TextId
    user_id: UserId
    duration_seconds: Literal[0, 600, 3600, 86400, -1]


class NewCode(Struct, frozen=True, rename="camel"):
    group_code: Code


def new_codes() -> tuple[str, ...]:
    return tuple("".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH)) for _ in range(5))


def handlers(
    db: Database, settings: Chat, limits: Limits, clock: Clock, new_id: IdMaker
) -> list[HTTPRouteHandler]:
    tries = RateLimit(TRIES_A_MINUTE, clock)
    most = settings.group.max_members

    async def profile(group: int, user: int) -> GroupProfile:
        found = await db.read(group_queries.profile, group, user)
        return group_profile(found.group, found.me)

    @post("/group/create", summary="Make a group", status_code=200, security=TOKEN)
    async def create(data: JSONBody[Creating]) -> Answer[GroupProfile]:
        """Its maker is its owner; the others are in it from the start. Takes an `Idempotency-Key`."""
        user = me()
        name = _name(data.name, limits.name)
        others = tuple(an_id("memberUserIds", text) for text in data.member_user_ids)
        key = key_of(user, _encode((name, others)))
        new = NewGroup(new_id(), name, user, others, new_codes(), clock.now_ms())
        group = await db.write_alone(group_actions.create_once, key, new, most)
        return answer(await profile(group, user))

    @get("/group/basic", summary="Names of groups I am in", security=TOKEN)
    async def basic(ids_: Ids) -> Answer[list[GroupBasic]]:
        found = await db.read(group_queries.of_ids, ids("ids", ids_), me())
        return answer([group_basic(group) for group in found])

    @get("/group/profile/by-id", summary="A group I am in", security=TOKEN)
    async def by_id(group_id: GroupId) -> Answer[GroupProfile]:
        return answer(await profile(an_id("groupId", group_id), me()))

    @get("/group/profile/by-code", summary="The group a code invites to", security=TOKEN)
    async def by_code(group_code: Annotated[str, QueryParameter(name="groupCode")]) -> Answer[GroupProfile]:
        user = me()
        tries.spend(user)
        found = await db.read(group_queries.profile_by_code, _code(group_code), user)
        return answer(group_profile(found.group, found.me))

    @get("/group/member/list", summary="Who is in a group", security=TOKEN)
    async def members(
        group_id: GroupId,
        limit: Limit = 50,
        last_user_id: Annotated[
            str, QueryParameter(name="lastUserId", description="`nextLastUserId` of the page before")
        ] = "0",
    ) -> Answer[MemberPage]:
        above = number("lastUserId", last_user_id)
        found = await db.read(group_queries.members_page, an_id("groupId", group_id), me(), above, limit)
        items = [member_item(member) for member in found.members]
        return answer(MemberPage(items, found.has_more, items[-1].user_id if found.has_more else None))

    @post("/group/join", summary="Join a group by its code", status_code=200, security=TOKEN)
    async def join(data: JSONBody[Joining]) -> Answer[GroupProfile]:
        """Upper or lower case. A new member starts at the present. Again is harmless."""
        user = me()
        tries.spend(user)
        group = await db.write(group_actions.join, _code(data.group_code), user, clock.now_ms(), most)
        return answer(await profile(group, user))

    @post("/group/leave", summary="Leave a group", status_code=200, security=TOKEN)
    async def leave(data: JSONBody[InGroup]) -> Answer[None]:
        """The owner hands it over first. Again is harmless."""
        await db.write(group_actions.leave, an_id("groupId", data.group_id), me())
        return answer(None)

    @post("/group/member/kick", summary="Remove a member", status_code=200, security=TOKEN)
    async def kick(data: JSONBody[OfMember]) -> Answer[None]:
        """By the owner; by an admin, if it is an ordinary member. Whoever knows the code may come back: reset it."""
        await db.write(
            group_actions.kick, an_id("groupId", data.group_id), me(), an_id("userId", data.user_id)
        )
        return answer(None)

    @post("/group/member/set-admin", summary="Make or unmake an admin", status_code=200, security=TOKEN)
    async def set_admin(data: JSONBody[SettingAdmin]) -> Answer[None]:
        """By the owner."""
        group, user = an_id("groupId", data.group_id), an_id("userId", data.user_id)
        await db.write(group_actions.set_admin, group, me(), user, is_admin=data.is_admin)
        return answer(None)

    @post("/group/member/mute", summary="Keep a member from speaking", status_code=200, security=TOKEN)
    async def mute(data: JSONBody[Muting]) -> Answer[None]:
        """By the owner; by an admin, if it is an ordinary member."""
        group, user, seconds = (
            an_id("groupId", data.group_id),
            an_id("userId", data.user_id),
            data.duration_seconds,
        )
        until = clock.now_ms() + seconds * 1000 if seconds > 0 else (MUTED_FOR_EVER if seconds else 0)
        await db.write(group_actions.mute, group, me(), user, until)
        return answer(None)

    @post("/group/owner/transfer", summary="Hand a group over", status_code=200, security=TOKEN)
    async def transfer(data: JSONBody[OfMember]) -> Answer[None]:
        """By the owner, who is an ordinary member from then on."""
        group, user = an_id("groupId", data.group_id), an_id("userId", data.user_id)
        await db.write(group_actions.transfer, group, me(), user)
        return answer(None)

    @post("/group/code/reset", summary="A new code for a group", status_code=200, security=TOKEN)
    async def reset_code(data: JSONBody[InGroup]) -> Answer[NewCode]:
        """By the owner or an admin. The old code lets nobody in any more."""
        group = an_id("groupId", data.group_id)
        return answer(NewCode(await db.write(group_actions.reset_code, group, me(), new_codes())))

    return [
        create,
        basic,
        by_id,
        by_code,
        members,
        join,
        leave,
        kick,
        set_admin,
        mute,
        transfer,
        reset_code,
    ]


def _name(name: str, longest: int) -> str:
    name = name.strip()
    if not 1 <= len(name) <= longest:
        raise InvalidField("name", f"must have 1 to {longest} characters")
    if not name.isprintable():
        raise InvalidField("name", "must not have control characters")
    return name


def _code(code: str) -> str:
    return code.strip().upper()[:64]
