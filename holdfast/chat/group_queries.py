"""The SQL of groups, and the reads made of it."""

from __future__ import annotations

from msgspec import Struct

from holdfast.chat import queries as sql
from holdfast.chat.errors import GroupNotFound
from holdfast.chat.model import Group, Member
from holdfast.store import Query, Snapshot, Statement

_GROUP = "SELECT g.id, g.name, g.code, c.members, c.head, g.made_ms FROM chat_group g JOIN conversation c ON c.id = g.id"

ADD_GROUP = Query(
    int,
    "INSERT INTO chat_group (id, name, code, made_ms) VALUES (:id, :name, :code, :now)"
    " ON CONFLICT (code) DO NOTHING RETURNING 1",
)
GROUP = Query(Group, f"{_GROUP} WHERE g.id = :id")
GROUPS = Query(Group, f"{_GROUP} WHERE g.id = ANY(:ids) ORDER BY g.id")
GROUP_BY_CODE = Query(Group, f"{_GROUP} WHERE g.code = :code")
GROUP_OF_CODE = Query(int, "SELECT id FROM chat_group WHERE code = :code")
SET_CODE = Statement("UPDATE chat_group SET code = :code WHERE id = :id")
NEXT_REVISION = Statement(
    "UPDATE conversation SET revision = revision + 1, members = :members WHERE id = :id"
)
REMOVE_MEMBER = Statement(
    "DELETE FROM conversation_member WHERE conversation = :conversation AND user_id = :user"
)
SET_ROLE = Statement(
    "UPDATE conversation_member SET role = :role WHERE conversation = :conversation AND user_id = :user"
)
MUTE = Statement(
    "UPDATE conversation_member SET muted_until_ms = :until"
    " WHERE conversation = :conversation AND user_id = :user"
)
MEMBERS_PAGE = Query(
    Member,
    "SELECT user_id, role, muted_until_ms, joined_ms, joined_msg_seq, last_delivered_msg_seq, last_read_msg_seq"
    " FROM conversation_member WHERE conversation = :conversation AND user_id > :above"
    " ORDER BY user_id LIMIT :limit",
)


class Profile(Struct, frozen=True):
    """A group, and the caller in it if they are."""

    group: Group
    me: Member | None


class MembersPage(Struct, frozen=True):
    members: list[Member]
    has_more: bool


def profile(view: Snapshot, group: int, user: int) -> Profile:
    """For members."""
    found = view.row(GROUP, id=group)
    me = view.row(sql.MEMBER, conversation=group, user=user)
    if found is None or me is None:
        raise GroupNotFound
    return Profile(found, me)


def profile_by_code(view: Snapshot, code: str, user: int) -> Profile:
    """For anybody who knows the code: it is an invitation."""
    found = view.row(GROUP_BY_CODE, code=code)
    if found is None:
        raise GroupNotFound
    return Profile(found, view.row(sql.MEMBER, conversation=found.id, user=user))


def of_ids(view: Snapshot, ids: list[int], user: int) -> list[Group]:
    """Those of these groups that the user is in."""
    found = view.rows(GROUPS, ids=ids)
    return [group for group in found if view.row(sql.MEMBER, conversation=group.id, user=user) is not None]


def members_page(view: Snapshot, group: int, user: int, above: int, limit: int) -> MembersPage:
    profile(view, group, user)
    found = view.rows(MEMBERS_PAGE, conversation=group, above=above, limit=limit + 1)
    return MembersPage(found[:limit], len(found) > limit)
