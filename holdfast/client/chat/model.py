"""What an app sees of chat. Pure data. A conversation is `u:` and a person's id, or `g:` and a group's."""

from __future__ import annotations

from msgspec import Struct

QUEUED, REFUSED = 0, 2
REVOKED = "REVOKED"


class Message(Struct, frozen=True):
    conversation: str
    seq: int
    """Its place; 0 while it waits to be sent."""
    server_msg_id: str
    client_msg_id: str
    sender: str
    msg_type: str
    body: str | None
    """None: revoked."""
    ts: int
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    refusal: str = ""
    """Why the server does not take it: `retry` or `discard` it."""

    @property
    def is_saved(self) -> bool:
        return self.seq > 0

    @property
    def is_revoked(self) -> bool:
        return self.msg_type == REVOKED


class Conversation(Struct, frozen=True):
    id: str
    name: str
    unread: int
    pending: int
    their_delivered: int
    their_read: int
    """How far the other one is (with a person)."""
    last: Message | None


class Group(Struct, frozen=True, rename="camel"):
    group_id: str
    name: str
    member_count: int = 0
    group_code: str | None = None
    my_role: str | None = None


class Member(Struct, frozen=True, rename="camel"):
    user_id: str
    role: str


def with_person(user_id: str) -> str:
    return f"u:{user_id}"


def in_group(group_id: str) -> str:
    return f"g:{group_id}"
