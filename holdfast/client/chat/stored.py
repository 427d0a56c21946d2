"""What came, in the replica: each message once, the contiguous prefix of each conversation. No network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.client.chat.model import REVOKED
from holdfast.client.chat.rules import contiguous
from holdfast.client.chat.wire import ConversationItem, Frame, conversation_of
from holdfast.client.feeds import meta, set_meta
from holdfast.client.replica import Transaction, View

CHAT = "chat"
EPOCH = "chat_epoch"


def topic(conversation: str) -> str:
    return f"chat.{conversation}"


def stored(tx: Transaction, frames: Iterable[Frame], me: str) -> list[Frame]:
    """Keeps messages, each once; answers those that are new. Acknowledging comes after the commit."""
    fresh = []
    touched: set[str] = set()
    for frame in frames:
        conversation = conversation_of(frame, me)
        know(tx, conversation)
        if insert(tx, conversation, frame):
            fresh.append(frame)
        touched.add(conversation)
    for conversation in touched:
        settle(tx, conversation)
    return fresh


def know(tx: Transaction, conversation: str) -> None:
    tx.execute("INSERT OR IGNORE INTO chat_conversation (id) VALUES (?)", conversation)


def insert(tx: Transaction, conversation: str, frame: Frame) -> bool:
    new = tx.execute(
        "INSERT OR IGNORE INTO chat_message (conversation, seq, server_msg_id, client_msg_id, sender, msg_type, body,"
        " ts, mentions, reply_to) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        conversation,
        frame.seq,
        frame.server_msg_id,
        frame.client_msg_id,
        frame.from_,
        frame.msg_type or "TEXT",
        frame.body,
        frame.ts,
        msgspec.json.encode(frame.mentions or []).decode(),
        frame.reply_to_server_msg_id,
    )
    if not new and frame.msg_type == REVOKED:
        revoked(tx, frame.server_msg_id)
    # ours, sent from here, and heard of through the list before its ACK arrived
    tx.execute(
        "DELETE FROM chat_outbox WHERE client_msg_id = ? AND conversation = ?",
        frame.client_msg_id,
        conversation,
    )
    tx.execute(
        "UPDATE chat_conversation SET head = max(head, ?), updated_ms = max(updated_ms, ?) WHERE id = ?",
        frame.seq,
        frame.ts,
        conversation,
    )
    return bool(new)


def settle(tx: Transaction, conversation: str) -> None:
    """Moves the contiguous prefix over what is stored."""
    reached = tx.number("SELECT contiguous FROM chat_conversation WHERE id = ?", conversation)
    above = [
        int(row[0] or 0)
        for row in tx.rows(
            "SELECT seq FROM chat_message WHERE conversation = ? AND seq > ? ORDER BY seq",
            conversation,
            reached,
        )
    ]
    tx.execute(
        "UPDATE chat_conversation SET contiguous = ? WHERE id = ?", contiguous(reached, above), conversation
    )
    tx.changed(CHAT, topic(conversation))


def filled(
    tx: Transaction, conversation: str, since: int, frames: Sequence[Frame], head: int, *, last: bool, me: str
) -> bool:
    """A page of the log from `since`: what it leaves out is not ours to see. False: it began above a gap of ours."""
    know(tx, conversation)
    reached = tx.number("SELECT contiguous FROM chat_conversation WHERE id = ?", conversation)
    if since > reached:
        return False
    for frame in frames:
        insert(tx, conversation, frame)
    seqs = [frame.seq for frame in frames]
    whole = max([reached, *seqs, *([head] if last else [])])
    base = since
    for seq in seqs:  # dense from the last hole on
        if seq > base + 1:
            tx.execute("UPDATE chat_conversation SET base = max(base, ?) WHERE id = ?", seq - 1, conversation)
        base = seq
    if last and head > base:
        tx.execute("UPDATE chat_conversation SET base = max(base, ?) WHERE id = ?", head, conversation)
    tx.execute(
        "UPDATE chat_conversation SET contiguous = ?, head = max(head, ?) WHERE id = ?",
        whole,
        whole,
        conversation,
    )
    settle(tx, conversation)
    return True


def refill(tx: Transaction, conversation: str) -> None:
    """What is here differs from what the server has: all of it is read again."""
    tx.execute("DELETE FROM chat_message WHERE conversation = ?", conversation)
    tx.execute("UPDATE chat_conversation SET base = 0, contiguous = 0 WHERE id = ?", conversation)
    tx.changed(CHAT, topic(conversation))


def follow_epoch(tx: Transaction, epoch: str) -> None:
    """A server that was restored gives msgSeqs out again: what is here is read anew. What waits to be sent stays."""
    if epoch and meta(tx, EPOCH) not in (None, epoch):
        tx.execute("DELETE FROM chat_message")
        tx.execute(
            "UPDATE chat_conversation SET base = 0, contiguous = 0, head = 0, acked = 0, seen_told = 0"
        )
        tx.changed(CHAT)
    set_meta(tx, EPOCH, epoch)


def listed(tx: Transaction, items: Sequence[ConversationItem]) -> None:
    """Where the server says that we and the others stand."""
    for item in items:
        know(tx, item.conversation)
        tx.execute(
            "UPDATE chat_conversation SET acked = ?, seen_told = ?, seen = max(seen, ?), head = max(head, ?),"
            " their_read = max(their_read, ?), updated_ms = max(updated_ms, ?),"
            " name = CASE WHEN ? <> '' THEN ? ELSE name END WHERE id = ?",
            int(item.my_last_delivered_msg_seq),
            int(item.my_last_read_msg_seq),
            int(item.my_last_read_msg_seq),
            int(item.head_msg_seq),
            int(item.peer_last_read_msg_seq or 0),
            item.updated_at,
            item.name or "",
            item.name or "",
            item.conversation,
        )
    tx.changed(CHAT)


def heard_of(tx: Transaction, conversation: str, seq: int) -> None:
    know(tx, conversation)
    tx.execute("UPDATE chat_conversation SET head = max(head, ?) WHERE id = ?", seq, conversation)


def revoked(tx: Transaction, server_msg_id: str) -> None:
    found = tx.value("SELECT conversation FROM chat_message WHERE server_msg_id = ?", server_msg_id)
    tx.execute(
        f"UPDATE chat_message SET body = NULL, msg_type = '{REVOKED}', mentions = '[]', reply_to = NULL"
        " WHERE server_msg_id = ?",
        server_msg_id,
    )
    tx.execute("DELETE FROM chat_revocation WHERE server_msg_id = ?", server_msg_id)
    if found is not None:
        tx.changed(CHAT, topic(str(found)))


def they_have(tx: Transaction, conversation: str, seq: int, *, read: bool) -> None:
    """The other one has received (and read) everything up to there."""
    tx.execute(
        "UPDATE chat_conversation SET their_delivered = max(their_delivered, ?), their_read = max(their_read, ?)"
        " WHERE id = ?",
        seq,
        seq if read else 0,
        conversation,
    )
    tx.changed(CHAT, topic(conversation))


def behind(view: View) -> list[tuple[str, int, int]]:
    """Conversations with a gap, or with more on the server: what is contiguous, and the head."""
    found = view.rows(
        "SELECT id, contiguous, head FROM chat_conversation WHERE head > contiguous ORDER BY id"
    )
    return [(str(identity), int(reached or 0), int(head or 0)) for identity, reached, head in found]


def thin(view: View) -> list[str]:
    """Conversations in which something between `base` and `contiguous` is missing: there must not be any."""
    found = view.rows(
        "SELECT id FROM chat_conversation c WHERE contiguous > base AND (SELECT count(*) FROM chat_message"
        " WHERE conversation = c.id AND seq > c.base AND seq <= c.contiguous) <> contiguous - base"
    )
    return [str(row[0]) for row in found]
