"""The decisions of chat: who may speak, revoke, govern a group; how a message travels to its group. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from holdfast.chat.model import MUTED_FOR_EVER, Kind, Member, Message, Role
from holdfast.chat.reasons import Reason
from holdfast.settings.chat import Group as GroupSettings

Delivery = Literal["push", "notify", "none"]

_read_ids = msgspec.json.Decoder(list[int]).decode

ACK_TYPES: Mapping[str, Literal["delivered", "read"]] = {
    "delivered": "delivered",
    "read": "read",
    "ack_read": "read",
}


def why_not_speak(kind: Kind, member: Member | None, now_ms: int) -> Reason | None:
    if kind is Kind.SINGLE:
        return None  # the conversation was opened by, or for, one of the two
    if member is None:
        return Reason.NOT_GROUP_MEMBER
    return Reason.GROUP_SPEAK_MUTED if is_muted(member, now_ms) else None


def is_muted(member: Member, now_ms: int) -> bool:
    return member.muted_until_ms == MUTED_FOR_EVER or member.muted_until_ms > now_ms


def why_not_revoke(
    message: Message, member: Member | None, user: int, now_ms: int, limit_ms: int
) -> Reason | None:
    if member is None:
        return Reason.MESSAGE_NOT_FOUND if message.sender != user else Reason.NOT_GROUP_MEMBER
    if message.sender != user:
        return Reason.NOT_MESSAGE_SENDER if message.seq > member.joined_seq else Reason.MESSAGE_NOT_FOUND
    if message.is_revoked:
        return None
    return Reason.REVOKE_TIMEOUT if now_ms - message.sent_ms > limit_ms else None


def called(message: Message) -> list[int]:
    """Whose attention a group message asks for: not the sender's own."""
    found = set(_read_ids(message.mentions)) if message.mentions else set()
    if message.reply_to_sender is not None:
        found.add(message.reply_to_sender)
    found.discard(message.sender)
    return sorted(found)


def delivery(settings: GroupSettings, members: int, online: int) -> Delivery:
    """How a message travels to the members who are online; the log holds it whatever the answer."""
    if settings.mode != "auto":
        return settings.mode
    if members >= settings.none_members:
        return "none"
    if members >= settings.notify_members or online >= settings.notify_online:
        return "none" if online >= settings.none_online else "notify"
    return "push"


def passes_receipts_on(settings: GroupSettings, members: int) -> bool:
    if settings.receipts == "auto":
        return members < settings.receipts_below
    return settings.receipts == "on"


def may_govern(actor: int, other: int) -> bool:
    """May a member of this role remove or mute a member of that one?"""
    return actor >= Role.ADMIN and actor > other
