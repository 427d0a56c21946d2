"""The envelope: one flat JSON object per text frame, absent fields left out, every id and cursor a string. Pure.

`Frame` is what a client may send, with every field; the small classes are what the server writes most.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.chat.model import Message, Status
from holdfast.ids import MAX_ID

LONGEST_ID = 200
RENAMED = {
    "from_": "from",
    "client_msg_id": "clientMsgId",
    "server_msg_id": "serverMsgId",
    "msg_seq": "msgSeq",
    "group_id": "groupId",
    "device_id": "deviceId",
    "ack_type": "ackType",
    "msg_type": "msgType",
    "reply_to": "replyToServerMsgId",
    "call_id": "callId",
    "call_kind": "callKind",
    "call_reason": "callReason",
    "ice_candidate": "iceCandidate",
    "ice_sdp_mid": "iceSdpMid",
    "ice_sdp_m_line_index": "iceSdpMLineIndex",
}
Word = Annotated[str, Meta(max_length=LONGEST_ID)]


class Frame(Struct, frozen=True, omit_defaults=True, rename=RENAMED):
    """What a client sent, its strings bounded; and what the server answers where no smaller class exists."""

    type: Word = ""
    client_msg_id: Word | None = None
    server_msg_id: Word | None = None
    msg_seq: Word | None = None
    from_: Word | None = None
    to: Word | None = None
    group_id: Word | None = None
    token: str | None = None
    device_id: Word | None = None
    ack_type: Word | None = None
    msg_type: Annotated[str, Meta(max_length=32)] | None = None
    body: str | None = None
    ts: int | None = None
    reason: Word | None = None
    mentions: Annotated[list[Word], Meta(max_length=50)] | None = None
    reply_to: Word | None = None
    important: bool | None = None
    epoch: Word | None = None
    call_id: Word | None = None
    call_kind: Word | None = None
    call_reason: Word | None = None
    sdp: str | None = None
    ice_candidate: str | None = None
    ice_sdp_mid: Word | None = None
    ice_sdp_m_line_index: int | None = None


MessageId = Annotated[str, Meta(examples=["7301444499999999"])]
AUser = Annotated[str, Meta(examples=["7301444401234567"])]


class MessageFrame(Struct, frozen=True, omit_defaults=True, rename=RENAMED):
    """A message, as receivers and lists see it."""

    type: Annotated[str, Meta(examples=["SINGLE_CHAT"])]
    server_msg_id: MessageId
    msg_seq: Annotated[str, Meta(examples=["12"])]
    from_: AUser
    client_msg_id: Annotated[str, Meta(examples=["5a1f"])]
    msg_type: Annotated[str, Meta(examples=["TEXT"])]
    ts: Annotated[int, Meta(examples=[1750000000000])]
    to: AUser | None = None
    group_id: Annotated[str, Meta(examples=["7301444405550000"])] | None = None
    body: Annotated[str, Meta(examples=["Hello!"])] | None = None
    mentions: list[AUser] | None = None
    reply_to: MessageId | None = None
    important: bool | None = None


class SavedAck(Struct, frozen=True, rename=RENAMED):
    client_msg_id: str
    server_msg_id: str
    msg_seq: str
    ts: int
    type: str = "ACK"
    ack_type: str = "saved"


class CannotRead(Exception):
    """This is no frame; nothing else of it can be said."""


_read = msgspec.json.Decoder(Frame).decode
_write = msgspec.json.Encoder().encode
_read_ids = msgspec.json.Decoder(list[int]).decode

REVOKED_TYPE = "REVOKED"


def decode(data: bytes) -> Frame:
    """The frame in `data`; raises `CannotRead`.

    U+0000 is refused: one of the two databases cannot keep it, and nobody means it.
    """
    try:
        frame = _read(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CannotRead(str(error)) from None
    if b"\\u0000" in data and any(_has_nul(value) for value in msgspec.structs.astuple(frame)):
        raise CannotRead("U+0000")
    return frame


def _has_nul(value: object) -> bool:
    if isinstance(value, list):
        return any(_has_nul(part) for part in value)
    return isinstance(value, str) and "\0" in value


def encode(frame: Struct) -> bytes:
    return _write(frame)


def id_of(text: str | None) -> int | None:
    """The id a string spells, or None: digits alone, no leading zero, 63 bits."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 19 or text[0] == "0":
        return None
    number = int(text)
    return number if number <= MAX_ID else None


def mentioned(message: Message) -> list[int]:
    return _read_ids(message.mentions) if message.mentions else []


def message_frame(message: Message, to: int, *, important: bool = False) -> MessageFrame:
    """The message as its conversation's members see it; a revoked one is a placeholder without its words.

    `to`: the receiver in a single chat, 0 in a group.
    """
    revoked = message.status == Status.REVOKED
    return MessageFrame(
        "SINGLE_CHAT" if to else "GROUP_CHAT",
        str(message.id),
        str(message.seq),
        str(message.sender),
        message.client_msg_id,
        REVOKED_TYPE if revoked else message.msg_type,
        message.sent_ms,
        str(to) if to else None,
        None if to else str(message.conversation),
        None if revoked else message.body,
        [str(user) for user in _read_ids(message.mentions)] if message.mentions and not revoked else None,
        str(message.reply_to) if message.reply_to is not None and not revoked else None,
        True if important and not revoked else None,
    )


def asks_for(message: Message, user_id: int) -> bool:
    """Does it mention this user, or reply to them?"""
    if message.reply_to_sender == user_id:
        return True
    return message.mentions is not None and user_id in _read_ids(message.mentions)
