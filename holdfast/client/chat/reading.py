"""What an app reads: conversations and their messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.client.chat.model import Conversation, Message
from holdfast.client.chat.outgoing import COLUMNS, Outgoing, as_outgoing
from holdfast.client.replica import Value, View

_strings = msgspec.json.Decoder(tuple[str, ...])

_MESSAGE = "conversation, seq, server_msg_id, client_msg_id, sender, msg_type, body, ts, mentions, reply_to"


def _message(row: Sequence[Value]) -> Message:
    values: tuple[Any, ...] = (*row[:8], _strings.decode(str(row[8])), row[9])
    return Message(*values)


def waiting_message(sent: Outgoing, me: str) -> Message:
    return Message(
        sent.conversation,
        0,
        "",
        sent.client_msg_id,
        me,
        sent.msg_type,
        sent.body,
        sent.made_ms,
        sent.mentions,
        sent.reply_to,
        sent.refusal,
    )


def messages(view: View, conversation: str, me: str, before: int | None, limit: int) -> list[Message]:
    """In their order; what waits to be sent is behind them."""
    found = view.rows(
        f"SELECT {_MESSAGE} FROM chat_message WHERE conversation = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        conversation,
        2**62 if before is None else before,
        limit,
    )
    shown = [_message(row) for row in reversed(found)]
    if before is None:
        waiting = view.rows(
            f"SELECT {COLUMNS} FROM chat_outbox WHERE conversation = ? ORDER BY number", conversation
        )
        shown += [waiting_message(as_outgoing(row), me) for row in waiting]
    return shown


def conversations(view: View, me: str) -> list[Conversation]:
    found = []
    for row in view.rows(
        "SELECT id, name, their_delivered, their_read, seen FROM chat_conversation ORDER BY updated_ms DESC, id"
    ):
        identity, name, their_delivered, their_read, seen = row
        last = messages(view, str(identity), me, None, 1)
        unread = view.number(
            "SELECT count(*) FROM chat_message WHERE conversation = ? AND seq > ? AND sender <> ?",
            identity,
            seen,
            me,
        )
        waiting = view.number("SELECT count(*) FROM chat_outbox WHERE conversation = ?", identity)
        found.append(
            Conversation(
                str(identity),
                str(name),
                unread,
                waiting,
                int(their_delivered or 0),
                int(their_read or 0),
                last[-1] if last else None,
            )
        )
    return found
