"""What changes conversations, messages and cursors: one transaction each. Ids and times are handed in."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from holdfast.accounts import queries as accounts
from holdfast.chat import queries as sql
from holdfast.chat import rules
from holdfast.chat.model import (
    AckType,
    CursorMoved,
    Draft,
    Kind,
    Member,
    Message,
    Revoked,
    Saved,
    Status,
    Target,
)
from holdfast.chat.reasons import Reason, Refused
from holdfast.store import Transaction

_write = msgspec.json.Encoder().encode


class Rival(Exception):
    """A message of the same sender and client id came into another conversation while these were being saved.

    Nothing was saved; sent one by one, only the one it concerns is refused.
    """


class Kept(Struct, frozen=True):
    """The answer to a message that is in the log."""

    id: int
    seq: int
    sent_ms: int
    replayed: bool


Outcome = Kept | Reason


def open_single_chat(tx: Transaction, user: int, peer: int, new_id: int, now_ms: int) -> int:
    """The conversation of these two; made if there is none."""
    low, high = min(user, peer), max(user, peer)
    there = tx.row(sql.PAIR, low=low, high=high)
    if there is not None:
        return there
    if accounts.user(tx, peer) is None:
        raise Refused(Reason.USER_NOT_FOUND)
    if tx.row(sql.ADD_PAIR, low=low, high=high, id=new_id) is None:
        return tx.one(sql.PAIR, low=low, high=high)
    tx.execute(sql.ADD_CONVERSATION, id=new_id, kind=Kind.SINGLE, members=2, now=now_ms)
    for member in (low, high):
        tx.row(sql.ADD_MEMBER, conversation=new_id, user=member, role=0, now=now_ms, head=0)
    return new_id


# -- send


def send(
    tx: Transaction,
    target: Target,
    sender: int,
    drafts: Sequence[Draft],
    *,
    history_on_join: bool = False,
    audited_device: str | None = None,
) -> list[Outcome]:
    """Saves messages of one sender to one conversation, in their order; answers each one's fate.

    The order of statements is what keeps msgSeq dense and the commits in its order: the conversation's row is
    locked; then the client ids are looked up; then rows are added; only then the counter moves. Rows are added in
    the order of their client ids, so that two transactions with the same ids wait for each other in one direction.
    """
    conversation = target.conversation
    locked = tx.row(sql.LOCK, id=conversation)
    if locked is None or locked.kind != target.kind:
        return [Reason.NOT_GROUP_MEMBER] * len(drafts)
    there = _sent_before(tx, sender, drafts)
    member = tx.row(sql.MEMBER, conversation=conversation, user=sender) if target.peer == 0 else None
    outcomes: list[Outcome] = []
    fresh: dict[str, Message] = {}
    seq = locked.head
    for draft in drafts:
        key = draft.client_msg_id
        earlier = there.get(key) or fresh.get(key)
        outcome: Outcome
        if earlier is not None:
            outcome = _again(earlier, conversation, draft)
        else:
            refused = rules.why_not_speak(target.kind, member, draft.sent_ms)
            made = refused or _made(tx, target, sender, draft, seq + 1, member, history_on_join)
            if isinstance(made, Message):
                seq += 1
                fresh[key] = made
                outcome = Kept(made.id, made.seq, made.sent_ms, False)
            else:
                outcome = made
        outcomes.append(outcome)
    if fresh:
        if not _add(tx, fresh, target):
            if len(drafts) > 1:
                raise Rival
            return [Reason.MSG_ID_CONFLICT]
        last = drafts[-1].sent_ms
        tx.execute(sql.COUNT_ON, id=conversation, head=seq, now=last)
        if audited_device is not None:
            for message in fresh.values():
                _audit(tx, message.id, sender, AckType.SAVED, audited_device, message.sent_ms)
        tx.after(Saved(target, locked.revision, tuple(fresh.values())))
    return outcomes


def _sent_before(tx: Transaction, sender: int, drafts: Sequence[Draft]) -> dict[str, Message]:
    if len(drafts) == 1:
        found = tx.row(sql.SENT_BEFORE_ONE, sender=sender, key=drafts[0].client_msg_id)
        return {} if found is None else {found.client_msg_id: found}
    keys = [draft.client_msg_id for draft in drafts]
    return {message.client_msg_id: message for message in tx.rows(sql.SENT_BEFORE, sender=sender, keys=keys)}


def _again(earlier: Message, conversation: int, draft: Draft) -> Outcome:
    """The same message again is answered as the first time; its words are gone when it was revoked."""
    if earlier.conversation != conversation or (not earlier.is_revoked and earlier.body != draft.body):
        return Reason.MSG_ID_CONFLICT
    return Kept(earlier.id, earlier.seq, earlier.sent_ms, True)


def _made(
    tx: Transaction,
    target: Target,
    sender: int,
    draft: Draft,
    seq: int,
    member: Member | None,
    history_on_join: bool,
) -> Message | Reason:
    conversation = target.conversation
    reply_to_sender = None
    if draft.reply_to is not None:
        meant = tx.row(sql.MESSAGE, id=draft.reply_to)
        above = member.joined_seq if member is not None and not history_on_join else 0
        if meant is None or meant.conversation != conversation or meant.seq <= above:
            return Reason.MESSAGE_NOT_FOUND
        reply_to_sender = meant.sender
    mentions: list[int] = []
    if draft.mentions and target.kind is Kind.GROUP:
        mentions = sorted(tx.rows(sql.MEMBERS_AMONG, conversation=conversation, users=list(draft.mentions)))
    return Message(
        draft.id,
        conversation,
        seq,
        sender,
        draft.client_msg_id,
        draft.msg_type,
        draft.body,
        Status.SAVED,
        _write(mentions).decode() if mentions else None,
        draft.reply_to,
        reply_to_sender,
        draft.sent_ms,
    )


def _add(tx: Transaction, fresh: dict[str, Message], target: Target) -> bool:
    """False when a rival has taken one of the client ids."""
    for key in sorted(fresh) if len(fresh) > 1 else fresh:
        message = fresh[key]
        added = tx.row(
            sql.ADD_MESSAGE,
            id=message.id,
            conversation=message.conversation,
            seq=message.seq,
            sender=message.sender,
            key=key,
            type=message.msg_type,
            body=message.body,
            mentions=message.mentions,
            reply_to=message.reply_to,
            reply_to_sender=message.reply_to_sender,
            now=message.sent_ms,
        )
        if added is None:
            return False
    if target.kind is Kind.GROUP:
        for message in fresh.values():
            for user in rules.called(message):
                tx.execute(sql.ADD_MENTION, conversation=message.conversation, user=user, seq=message.seq)
    return True


# -- revoke


def revoke(tx: Transaction, message_id: int, user: int, now_ms: int, limit_ms: int) -> Revoked:
    """Takes a message's words back. Again is harmless; raises `Refused`."""
    found = tx.row(sql.MESSAGE, id=message_id)
    if found is None:
        raise Refused(Reason.MESSAGE_NOT_FOUND)
    locked = tx.one(sql.LOCK, id=found.conversation)
    member = tx.row(sql.MEMBER, conversation=found.conversation, user=user)
    message = tx.one(sql.MESSAGE, id=message_id)
    refused = rules.why_not_revoke(message, member, user, now_ms, limit_ms)
    if refused is not None:
        raise Refused(refused)
    peer = 0
    if locked.kind == Kind.SINGLE:
        low, high = tx.one(sql.PEERS, conversation=found.conversation)
        peer = low if high == user else high
    revoked = Revoked(
        found.conversation, locked.kind, message_id, message.seq, user, locked.revision, peer, now_ms
    )
    if not message.is_revoked:
        tx.execute(sql.REVOKE, id=message_id, now=now_ms)
        tx.execute(sql.FORGET_MENTIONS, conversation=found.conversation, seq=message.seq)
        tx.after(revoked)
    return revoked


# -- receipts


class Move(Struct, frozen=True):
    """How far a member says to have come; 0: nothing was said."""

    conversation: int
    user_id: int
    delivered: int
    read: int
    kind: int


class Audit(Struct, frozen=True):
    """One acknowledgement, for `message_ack`."""

    message: int
    user_id: int
    ack_type: int
    device_id: str
    acked_ms: int


def move_cursors(tx: Transaction, moves: Sequence[Move], audits: Sequence[Audit] = ()) -> list[CursorMoved]:
    """Moves cursors forward, never back; `moves` come sorted, so that two batches cannot wait for each other."""
    moved: list[CursorMoved] = []
    for move in moves:
        before = tx.row(sql.LOCK_CURSORS, conversation=move.conversation, user=move.user_id)
        if before is None:
            continue  # no member (any more)
        read = max(before[1], move.read)
        delivered = max(before[0], move.delivered, read)
        if (delivered, read) == before:
            continue
        tx.execute(
            sql.MOVE_CURSORS,
            conversation=move.conversation,
            user=move.user_id,
            delivered=delivered,
            read=read,
        )
        members = tx.one(sql.REVISION, id=move.conversation)[1] if move.kind == Kind.GROUP else 2
        moved.append(
            CursorMoved(move.conversation, move.user_id, before[0], delivered, before[1], read, members)
        )
    for audit in audits:
        _audit(tx, audit.message, audit.user_id, audit.ack_type, audit.device_id, audit.acked_ms)
    return moved


def _audit(tx: Transaction, message: int, user: int, ack_type: int, device: str, now_ms: int) -> None:
    tx.execute(sql.ADD_ACK, message=message, user=user, type=int(ack_type), device=device, now=now_ms)


# -- seats


def take_seat(tx: Transaction, user: int) -> int:
    """The generation of the user's newest connection, one above the last."""
    return tx.one(sql.TAKE_SEAT, user=user)
