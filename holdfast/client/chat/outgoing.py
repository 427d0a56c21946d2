"""What is to be sent, in the replica: messages in their order, revocations, how far we have received and read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from holdfast.client.chat.model import QUEUED, REFUSED
from holdfast.client.chat.stored import CHAT, insert, know, settle, topic
from holdfast.client.chat.wire import Frame
from holdfast.client.replica import Transaction, Value, View

OUTBOX = "chat.outbox"

_strings = msgspec.json.Decoder(tuple[str, ...])


class Outgoing(Struct, frozen=True):
    number: int
    client_msg_id: str
    conversation: str
    msg_type: str
    body: str
    mentions: tuple[str, ...]
    reply_to: str | None
    important: bool
    made_ms: int
    refusal: str = ""


COLUMNS = (
    "number, client_msg_id, conversation, msg_type, body, mentions, reply_to, important, made_ms, reason"
)


def as_outgoing(row: Sequence[Value]) -> Outgoing:
    values = list(row)
    values[5] = _strings.decode(str(row[5]))  # type: ignore[call-overload]
    values[7] = bool(row[7])
    return Outgoing(*values)  # type: ignore[arg-type]


def queue(tx: Transaction, message: Outgoing) -> None:
    know(tx, message.conversation)
    tx.execute(
        "INSERT INTO chat_outbox (client_msg_id, conversation, msg_type, body, mentions, reply_to, important, made_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        message.client_msg_id,
        message.conversation,
        message.msg_type,
        message.body,
        msgspec.json.encode(message.mentions).decode(),
        message.reply_to,
        int(message.important),
        message.made_ms,
    )
    tx.execute(
        "UPDATE chat_conversation SET updated_ms = max(updated_ms, ?) WHERE id = ?",
        message.made_ms,
        message.conversation,
    )
    tx.changed(OUTBOX, CHAT, topic(message.conversation))


def first_of_each(view: View) -> list[Outgoing]:
    """The oldest message of each conversation: one at a time keeps a sender's order, whatever is answered."""
    found = view.rows(
        f"SELECT {COLUMNS} FROM chat_outbox WHERE number IN (SELECT min(number) FROM chat_outbox"
        f" WHERE state = {QUEUED} GROUP BY conversation) ORDER BY number"
    )
    return [as_outgoing(row) for row in found]


def saved(tx: Transaction, frame: Frame, me: str) -> None:
    """`ACK saved`: the message has its place."""
    row = tx.row(f"SELECT {COLUMNS} FROM chat_outbox WHERE client_msg_id = ?", frame.client_msg_id)
    if row is None:
        return
    message = as_outgoing(row)
    place = Frame(
        type="",
        client_msg_id=frame.client_msg_id,
        server_msg_id=frame.server_msg_id,
        msg_seq=frame.msg_seq,
        from_=me,
        msg_type=message.msg_type,
        body=message.body,
        ts=frame.ts or message.made_ms,
        mentions=list(message.mentions),
        reply_to_server_msg_id=message.reply_to,
    )
    insert(tx, message.conversation, place)
    settle(tx, message.conversation)
    tx.changed(OUTBOX)


def refused(tx: Transaction, client_msg_id: str, reason: str) -> None:
    found = tx.value("SELECT conversation FROM chat_outbox WHERE client_msg_id = ?", client_msg_id)
    tx.execute(
        f"UPDATE chat_outbox SET state = {REFUSED}, reason = ? WHERE client_msg_id = ?", reason, client_msg_id
    )
    if found is not None:
        tx.changed(OUTBOX, CHAT, topic(str(found)))


def retry(tx: Transaction, client_msg_id: str) -> bool:
    done = tx.execute(
        f"UPDATE chat_outbox SET state = {QUEUED}, reason = '' WHERE client_msg_id = ? AND state = {REFUSED}",
        client_msg_id,
    )
    tx.changed(OUTBOX, CHAT)
    return bool(done)


def discard(tx: Transaction, client_msg_id: str) -> bool:
    found = tx.value("SELECT conversation FROM chat_outbox WHERE client_msg_id = ?", client_msg_id)
    done = tx.execute("DELETE FROM chat_outbox WHERE client_msg_id = ? AND state = ?", client_msg_id, REFUSED)
    tx.changed(OUTBOX, CHAT, topic(str(found)))
    return bool(done)


# -- receipts


class Receipt(Struct, frozen=True):
    conversation: str
    seq: int
    server_msg_id: str


def due_receipts(view: View, me: str, *, read: bool) -> list[Receipt]:
    """For each conversation the highest message of others that we have (or have read) and the server was not told of."""
    upto, told = ("min(seen, contiguous)", "seen_told") if read else ("contiguous", "acked")
    found = view.rows(
        f"SELECT c.id, m.seq, m.server_msg_id FROM chat_conversation c JOIN chat_message m ON m.conversation = c.id"
        f" AND m.seq = (SELECT max(seq) FROM chat_message WHERE conversation = c.id AND seq <= {upto}"
        f" AND seq > {told} AND sender <> ?) WHERE {upto} > {told}",
        me,
    )
    return [Receipt(*row) for row in found]  # type: ignore[arg-type]


def told(tx: Transaction, receipts: Sequence[Receipt], *, read: bool) -> None:
    column = "seen_told" if read else "acked"
    tx.many(
        f"UPDATE chat_conversation SET {column} = max({column}, ?) WHERE id = ?",
        [(receipt.seq, receipt.conversation) for receipt in receipts],
    )


def mark_read(tx: Transaction, conversation: str) -> None:
    """Everything that is here without a gap."""
    tx.execute("UPDATE chat_conversation SET seen = max(seen, contiguous) WHERE id = ?", conversation)
    tx.changed(OUTBOX, CHAT, topic(conversation))


def pending(view: View) -> int:
    return view.number(f"SELECT count(*) FROM chat_outbox WHERE state = {QUEUED}")


def failed(view: View) -> int:
    return view.number(f"SELECT count(*) FROM chat_outbox WHERE state = {REFUSED}")
