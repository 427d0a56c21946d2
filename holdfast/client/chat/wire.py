"""The chat's words on the wire: one flat object per frame, every id and cursor a string."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, field

T = TypeVar("T")


class Frame(Struct, rename="camel", omit_defaults=True):
    type: str = ""
    client_msg_id: str = ""
    server_msg_id: str = ""
    msg_seq: str = "0"
    from_: str = field(name="from", default="")
    to: str | None = None
    group_id: str | None = None
    token: str | None = None
    device_id: str | None = None
    ack_type: str = ""
    msg_type: str = ""
    body: str | None = None
    ts: int = 0
    reason: str = ""
    mentions: list[str] | None = None
    reply_to_server_msg_id: str | None = None
    important: bool | None = None
    epoch: str = ""

    @property
    def seq(self) -> int:
        return int(self.msg_seq)


class MessagePage(Struct, rename="camel"):
    items: list[Frame]
    has_more: bool


class ConversationItem(Struct, rename="camel"):
    head_msg_seq: str = "0"
    my_last_delivered_msg_seq: str = "0"
    my_last_read_msg_seq: str = "0"
    peer_user_id: str | None = None
    peer_last_read_msg_seq: str | None = None
    group_id: str | None = None
    name: str | None = None
    updated_at: int = 0

    @property
    def conversation(self) -> str:
        return f"g:{self.group_id}" if self.group_id is not None else f"u:{self.peer_user_id}"


class ConversationPage(Struct, rename="camel"):
    items: list[ConversationItem]
    has_more: bool
    next_last_updated_at: str | None = None
    next_last_id: str | None = None


class UserBasic(Struct, rename="camel"):
    user_id: str
    username: str


class GroupBasic(Struct, rename="camel"):
    group_id: str
    name: str


class Answer(Struct, Generic[T]):
    data: T


FRAME = msgspec.json.Decoder(Frame)
MESSAGES = msgspec.json.Decoder(Answer[MessagePage])
CONVERSATIONS = msgspec.json.Decoder(Answer[ConversationPage])
USERS = msgspec.json.Decoder(Answer[list[UserBasic]])
GROUPS = msgspec.json.Decoder(Answer[list[GroupBasic]])


def conversation_of(frame: Frame, me: str) -> str:
    if frame.group_id is not None:
        return f"g:{frame.group_id}"
    return f"u:{frame.to if frame.from_ == me else frame.from_}"


encode = msgspec.json.encode
