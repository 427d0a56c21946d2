"""What lists show: messages of a conversation, a user's conversations, who has read how far. Reads only.

Every read looks first whether the user is a member, and shows nothing of before they joined unless the operator
says so.
"""

from __future__ import annotations

from msgspec import Struct

from holdfast.chat import queries as sql
from holdfast.chat.errors import GroupNotFound
from holdfast.chat.model import Kind, Member, Message
from holdfast.store import Query, Snapshot

MOST_UNREAD = 1_000
"""Counted exactly up to here; a list must not read a million messages to print a number."""

UNREAD = Query(
    int,
    "SELECT count(*) FROM (SELECT 1 FROM message WHERE conversation = :conversation AND msg_seq > :above"
    " AND sender <> :user ORDER BY msg_seq LIMIT :most) unread",
)
UNREAD_MENTIONS = Query(
    int,
    "SELECT count(*) FROM (SELECT 1 FROM message_mention WHERE conversation = :conversation AND user_id = :user"
    " AND msg_seq > :above LIMIT :most) mentions",
)


class Listed(Struct, frozen=True):
    """A conversation in a user's list, before its numbers are counted."""

    id: int
    updated_ms: int
    head: int
    joined_seq: int
    delivered: int
    read: int
    members: int


LISTED = Query(
    Listed,
    "SELECT c.id, c.updated_ms, c.head, m.joined_msg_seq, m.last_delivered_msg_seq, m.last_read_msg_seq, c.members"
    " FROM conversation_member m JOIN conversation c ON c.id = m.conversation"
    " WHERE m.user_id = :user AND c.kind = :kind AND (c.kind = 2 OR c.head > 0)"
    " AND (c.updated_ms < :updated OR (c.updated_ms = :updated AND c.id < :id))"
    " ORDER BY c.updated_ms DESC, c.id DESC LIMIT :limit",
)
GROUP_NAMES = Query(tuple[int, str], "SELECT id, name FROM chat_group WHERE id = ANY(:ids)")


class Messages(Struct, frozen=True):
    conversation: int
    to: int
    """The other one of a single chat; 0 in a group."""
    messages: list[Message]
    has_more: bool


class Conversation(Struct, frozen=True):
    row: Listed
    peer: int
    peer_read: int
    name: str
    unread: int
    mentions: int
    last: Message | None


class Conversations(Struct, frozen=True):
    found: list[Conversation]
    has_more: bool


class States(Struct, frozen=True):
    """How far the two of a single chat have come."""

    conversation: int
    head: int
    mine: Member
    theirs: Member


class Window(Struct, frozen=True):
    """Which messages: above `since`, ascending; or below `last`, descending (None: from the newest)."""

    limit: int
    since: int | None = None
    last: int | None = None


NO_SEQ = 2**62


def single_messages(view: Snapshot, user: int, peer: int, window: Window, *, everything: bool) -> Messages:
    """Two who have not spoken have no messages; that is no error."""
    conversation = sql.pair(view, min(user, peer), max(user, peer))
    if conversation is None:
        return Messages(0, peer, [], False)
    return _messages(view, conversation, user, peer, window, everything=everything)


def group_messages(view: Snapshot, user: int, group: int, window: Window, *, everything: bool) -> Messages:
    return _messages(view, group, user, 0, window, everything=everything)


def _messages(
    view: Snapshot, conversation: int, user: int, peer: int, window: Window, *, everything: bool
) -> Messages:
    member = view.row(sql.MEMBER, conversation=conversation, user=user)
    if member is None:
        raise GroupNotFound
    floor = 0 if everything else member.joined_seq
    limit = window.limit + 1
    if window.since is not None:
        above = max(floor, window.since)
        found = view.rows(sql.ABOVE, conversation=conversation, above=above, limit=limit)
    else:
        below = NO_SEQ if window.last is None else window.last
        found = view.rows(sql.BELOW, conversation=conversation, above=floor, below=below, limit=limit)
    return Messages(conversation, peer, found[: window.limit], len(found) > window.limit)


def conversations(
    view: Snapshot, user: int, kind: Kind, limit: int, before: tuple[int, int] | None, *, everything: bool
) -> Conversations:
    """A user's conversations, the latest first; `before`: the place where the last page ended."""
    updated, last_id = before or (NO_SEQ, 0)
    rows = view.rows(LISTED, user=user, kind=kind, updated=updated, id=last_id, limit=limit + 1)
    page = rows[:limit]
    names = dict(view.rows(GROUP_NAMES, ids=[row.id for row in page])) if kind is Kind.GROUP else {}
    found = [_conversation(view, user, row, names.get(row.id, ""), kind, everything) for row in page]
    return Conversations(found, len(rows) > limit)


def _conversation(
    view: Snapshot, user: int, row: Listed, name: str, kind: Kind, everything: bool
) -> Conversation:
    peer = peer_read = mentions = 0
    if kind is Kind.SINGLE:
        low, high = view.one(sql.PEERS, conversation=row.id)
        peer = low if high == user else high
        peer_read = view.one(sql.MEMBER, conversation=row.id, user=peer).read
    else:
        mentions = view.one(UNREAD_MENTIONS, conversation=row.id, user=user, above=row.read, most=MOST_UNREAD)
    unread = view.one(UNREAD, conversation=row.id, user=user, above=row.read, most=MOST_UNREAD)
    floor = 0 if everything else row.joined_seq
    last = view.row(sql.BELOW, conversation=row.id, above=floor, below=NO_SEQ, limit=1)
    return Conversation(row, peer, peer_read, name, unread, mentions, last)


def single_states(view: Snapshot, user: int, peer: int) -> States | None:
    conversation = sql.pair(view, min(user, peer), max(user, peer))
    if conversation is None:
        return None
    mine = view.one(sql.MEMBER, conversation=conversation, user=user)
    theirs = view.one(sql.MEMBER, conversation=conversation, user=peer)
    return States(conversation, view.one(sql.REVISION_AND_HEAD, id=conversation)[1], mine, theirs)
