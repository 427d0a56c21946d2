"""What HTTP answers look like. Messages are the flat objects of the WebSocket; every id and cursor is a string."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.chat.calls import CallState
from holdfast.chat.frames import MessageFrame, message_frame
from holdfast.chat.history import Conversation, Messages, States
from holdfast.chat.model import Call, Group, Member, Message, Role

UserId = Annotated[str, Meta(examples=["7301444401234567"])]
Seq = Annotated[str, Meta(examples=["42"])]

ROLES = {Role.OWNER: "owner", Role.ADMIN: "admin", Role.MEMBER: "member"}


class MessagePage(Struct, frozen=True, rename="camel"):
    items: list[MessageFrame]
    has_more: bool


class ConversationItem(Struct, frozen=True, rename="camel", omit_defaults=True):
    conversation_id: str
    updated_at: int
    unread_count: int
    """Exact up to 1,000."""
    head_msg_seq: Seq
    my_last_delivered_msg_seq: Seq
    my_last_read_msg_seq: Seq
    peer_user_id: UserId | None = None
    peer_last_read_msg_seq: Seq | None = None
    group_id: str | None = None
    name: str | None = None
    member_count: int | None = None
    mention_unread_count: int | None = None
    last_message: MessageFrame | None = None


class ConversationPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    items: list[ConversationItem]
    has_more: bool
    next_last_updated_at: str | None = None
    next_last_id: str | None = None


class MemberState(Struct, frozen=True, rename="camel"):
    """How far both have come; zeros while they have not spoken."""

    peer_user_id: UserId
    head_msg_seq: Seq
    my_last_delivered_msg_seq: Seq
    my_last_read_msg_seq: Seq
    peer_last_delivered_msg_seq: Seq
    peer_last_read_msg_seq: Seq


class GroupBasic(Struct, frozen=True, rename="camel"):
    group_id: str
    name: str
    member_count: int


class GroupProfile(Struct, frozen=True, rename="camel", omit_defaults=True):
    group_id: str
    name: str
    member_count: int
    created_at: int
    is_member: bool
    group_code: str | None = None
    """Shown to members."""
    my_role: str | None = None
    muted_until: int | None = None
    """Milliseconds; -1: until somebody lifts it; absent: not muted."""


class MemberItem(Struct, frozen=True, rename="camel", omit_defaults=True):
    user_id: UserId
    role: str
    joined_at: int
    last_delivered_msg_seq: Seq
    last_read_msg_seq: Seq
    muted_until: int | None = None


class MemberPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    items: list[MemberItem]
    has_more: bool
    next_last_user_id: UserId | None = None


class UserBasic(Struct, frozen=True, rename="camel"):
    user_id: UserId
    username: str


class CallItem(Struct, frozen=True, rename="camel", omit_defaults=True):
    call_id: str
    caller_user_id: UserId
    callee_user_id: UserId
    call_kind: str
    state: str
    created_at: int
    accepted_at: int | None = None
    ended_at: int | None = None
    call_reason: str | None = None


class CallPage(Struct, frozen=True, rename="camel", omit_defaults=True):
    items: list[CallItem]
    has_more: bool
    next_last_id: str | None = None


def message_of(message: Message, user: int, peer: int) -> MessageFrame:
    """As the WebSocket would show it to the user."""
    to = 0 if not peer else (peer if message.sender == user else user)
    return message_frame(message, to)


def message_page(found: Messages, user: int) -> MessagePage:
    return MessagePage([message_of(message, user, found.to) for message in found.messages], found.has_more)


def conversation_item(found: Conversation, user: int) -> ConversationItem:
    row, is_group = found.row, not found.peer
    return ConversationItem(
        conversation_id=str(row.id),
        updated_at=row.updated_ms,
        unread_count=found.unread,
        head_msg_seq=str(row.head),
        my_last_delivered_msg_seq=str(row.delivered),
        my_last_read_msg_seq=str(row.read),
        peer_user_id=None if is_group else str(found.peer),
        peer_last_read_msg_seq=None if is_group else str(found.peer_read),
        group_id=str(row.id) if is_group else None,
        name=found.name if is_group else None,
        member_count=row.members if is_group else None,
        mention_unread_count=found.mentions if is_group else None,
        last_message=None if found.last is None else message_of(found.last, user, found.peer),
    )


def member_state(peer: int, found: States | None) -> MemberState:
    if found is None:
        return MemberState(str(peer), "0", "0", "0", "0", "0")
    mine, theirs = found.mine, found.theirs
    return MemberState(
        str(peer),
        str(found.head),
        str(mine.delivered),
        str(mine.read),
        str(theirs.delivered),
        str(theirs.read),
    )


def group_basic(group: Group) -> GroupBasic:
    return GroupBasic(str(group.id), group.name, group.members)


def group_profile(group: Group, me: Member | None) -> GroupProfile:
    return GroupProfile(
        group_id=str(group.id),
        name=group.name,
        member_count=group.members,
        created_at=group.made_ms,
        is_member=me is not None,
        group_code=group.code if me is not None else None,
        my_role=ROLES[Role(me.role)] if me is not None else None,
        muted_until=me.muted_until_ms or None if me is not None else None,
    )


def member_item(member: Member) -> MemberItem:
    return MemberItem(
        user_id=str(member.user_id),
        role=ROLES[Role(member.role)],
        joined_at=member.joined_ms,
        last_delivered_msg_seq=str(member.delivered),
        last_read_msg_seq=str(member.read),
        muted_until=member.muted_until_ms or None,
    )


def call_item(call: Call) -> CallItem:
    return CallItem(
        call_id=str(call.id),
        caller_user_id=str(call.caller),
        callee_user_id=str(call.callee),
        call_kind=call.kind,
        state=CallState(call.state).name.lower(),
        created_at=call.made_ms,
        accepted_at=call.accepted_ms,
        ended_at=call.ended_ms,
        call_reason=call.why,
    )
