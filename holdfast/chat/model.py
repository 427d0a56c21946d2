"""What chat is made of: conversations, messages, members, calls, and the events that follow a commit. Pure data."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct


class Kind(IntEnum):
    """Of a conversation."""

    SINGLE = 1
    GROUP = 2


class Role(IntEnum):
    """In a group; who is higher may do more."""

    MEMBER = 0
    ADMIN = 1
    OWNER = 2


class Status(IntEnum):
    """Of a message. It never says who received or read it: the members' cursors do."""

    SAVED = 1
    REVOKED = 4
    RECEIVED = 5
    DROPPED = 6


class AckType(IntEnum):
    """As kept in `message_ack`."""

    SAVED = 1
    DELIVERED = 2
    READ = 3


MUTED_FOR_EVER = -1


class Message(Struct, frozen=True):
    """A message as it lies in the log."""

    id: int
    conversation: int
    seq: int
    sender: int
    client_msg_id: str
    msg_type: str
    body: str
    status: int
    mentions: str | None
    """User ids as a JSON list."""
    reply_to: int | None
    reply_to_sender: int | None
    sent_ms: int

    @property
    def is_revoked(self) -> bool:
        return self.status == Status.REVOKED


class Draft(Struct, frozen=True):
    """A message on its way into the log: everything but its place."""

    id: int
    client_msg_id: str
    msg_type: str
    body: str
    sent_ms: int
    mentions: tuple[int, ...] = ()
    reply_to: int | None = None


class Target(Struct, frozen=True):
    """Where a sender's messages go."""

    conversation: int
    kind: Kind
    peer: int
    """The other one in a single chat; 0 in a group."""


class Place(Struct, frozen=True):
    """Where a message lies: what an acknowledgement of it moves, and whom it concerns."""

    conversation: int
    kind: int
    seq: int
    sender: int
    sent_ms: int


class Member(Struct, frozen=True):
    user_id: int
    role: int
    muted_until_ms: int
    joined_ms: int
    joined_seq: int
    delivered: int
    read: int


class Standing(Struct, frozen=True):
    """How far a user has come in a conversation, and how far it goes."""

    conversation: int
    kind: int
    head: int
    joined_seq: int
    delivered: int


class Group(Struct, frozen=True):
    id: int
    name: str
    code: str
    members: int
    head: int
    made_ms: int


class Call(Struct, frozen=True):
    id: int
    caller: int
    callee: int
    kind: str
    state: int
    made_ms: int
    accepted_ms: int | None
    ended_ms: int | None
    why: str | None


# -- events: best effort, after the commit


class Saved(Struct, frozen=True):
    """Messages that came into a conversation, in the order of their msgSeq, under its membership of that moment."""

    target: Target
    revision: int
    messages: tuple[Message, ...]


class Revoked(Struct, frozen=True):
    conversation: int
    kind: int
    message: int
    seq: int
    sender: int
    revision: int
    peer: int
    revoked_ms: int


class Gone(Struct, frozen=True):
    """These users are no members any more."""

    conversation: int
    users: tuple[int, ...]


class CursorMoved(Struct, frozen=True):
    """A member's cursors, as a batch of acknowledgements has left them."""

    conversation: int
    user_id: int
    delivered_before: int
    delivered: int
    read_before: int
    read: int
    members: int
    """How many are in the conversation."""
