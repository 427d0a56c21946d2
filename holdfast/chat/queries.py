"""The SQL of messages and cursors, and the reads made of it.

Locks are taken in this order: conversation, a message's client id, members (by conversation, then user).
"""

from __future__ import annotations

from msgspec import Struct

from holdfast.chat.model import Member, Message, Place, Standing
from holdfast.store import Query, Snapshot, Statement

PAGE = 200
STANDINGS_PAGE = 1_000

# -- conversations


class Locked(Struct, frozen=True):
    kind: int
    head: int
    revision: int
    members: int


LOCK = Query(
    Locked, "SELECT kind, head, revision, members FROM conversation WHERE id = :id FOR NO KEY UPDATE"
)
COUNT_ON = Statement("UPDATE conversation SET head = :head, updated_ms = :now WHERE id = :id")
ADD_CONVERSATION = Statement(
    "INSERT INTO conversation (id, kind, head, revision, members, updated_ms)"
    " VALUES (:id, :kind, 0, 1, :members, :now)"
)
PAIR = Query(int, "SELECT conversation FROM single_chat WHERE low = :low AND high = :high")
ADD_PAIR = Query(
    int,
    "INSERT INTO single_chat (low, high, conversation) VALUES (:low, :high, :id) ON CONFLICT (low, high)"
    " DO NOTHING RETURNING conversation",
)
ADD_MEMBER = Query(
    int,
    "INSERT INTO conversation_member (conversation, user_id, role, muted_until_ms, joined_ms, joined_msg_seq,"
    " last_delivered_msg_seq, last_read_msg_seq) VALUES (:conversation, :user, :role, 0, :now, :head, :head, :head)"
    " ON CONFLICT (conversation, user_id) DO NOTHING RETURNING 1",
)
MEMBER = Query(
    Member,
    "SELECT user_id, role, muted_until_ms, joined_ms, joined_msg_seq, last_delivered_msg_seq, last_read_msg_seq"
    " FROM conversation_member WHERE conversation = :conversation AND user_id = :user",
)
MEMBERS_AMONG = Query(
    int,
    "SELECT user_id FROM conversation_member WHERE conversation = :conversation AND user_id = ANY(:users)",
)
MEMBER_IDS = Query(int, "SELECT user_id FROM conversation_member WHERE conversation = :conversation")
REVISION = Query(tuple[int, int], "SELECT revision, members FROM conversation WHERE id = :id")
PEERS = Query(tuple[int, int], "SELECT low, high FROM single_chat WHERE conversation = :conversation")

# -- messages

COLUMNS = (
    "id, conversation, msg_seq, sender, client_msg_id, msg_type, body, status, mentions, reply_to,"
    " reply_to_sender, sent_ms"
)
SENT_BEFORE = Query(
    Message, f"SELECT {COLUMNS} FROM message WHERE sender = :sender AND client_msg_id = ANY(:keys)"
)
SENT_BEFORE_ONE = Query(
    Message, f"SELECT {COLUMNS} FROM message WHERE sender = :sender AND client_msg_id = :key"
)
ADD_MESSAGE = Query(
    int,
    f"INSERT INTO message ({COLUMNS}) VALUES (:id, :conversation, :seq, :sender, :key, :type, :body, 1,"
    " :mentions, :reply_to, :reply_to_sender, :now)"
    " ON CONFLICT (sender, client_msg_id) DO NOTHING RETURNING 1",
)
ADD_MENTION = Statement(
    "INSERT INTO message_mention (conversation, user_id, msg_seq) VALUES (:conversation, :user, :seq)"
)
ADD_ACK = Statement(
    "INSERT INTO message_ack (message, user_id, ack_type, device_id, acked_ms)"
    " VALUES (:message, :user, :type, :device, :now) ON CONFLICT DO NOTHING"
)
MESSAGE = Query(Message, f"SELECT {COLUMNS} FROM message WHERE id = :id")
ABOVE = Query(
    Message,
    f"SELECT {COLUMNS} FROM message WHERE conversation = :conversation AND msg_seq > :above"
    " ORDER BY msg_seq LIMIT :limit",
)
BELOW = Query(
    Message,
    f"SELECT {COLUMNS} FROM message WHERE conversation = :conversation AND msg_seq > :above"
    " AND msg_seq < :below ORDER BY msg_seq DESC LIMIT :limit",
)
REVOKE = Statement(
    "UPDATE message SET status = 4, body = '', mentions = NULL, revoked_ms = :now WHERE id = :id"
)
FORGET_MENTIONS = Statement(
    "DELETE FROM message_mention WHERE conversation = :conversation AND msg_seq = :seq"
)
PLACE = Query(
    Place,
    "SELECT m.conversation, c.kind, m.msg_seq, m.sender, m.sent_ms FROM message m"
    " JOIN conversation c ON c.id = m.conversation WHERE m.id = :id",
)
LAST_ID = Query(int, "SELECT max(id) FROM message HAVING max(id) IS NOT NULL")

# -- cursors

LOCK_CURSORS = Query(
    tuple[int, int],
    "SELECT last_delivered_msg_seq, last_read_msg_seq FROM conversation_member"
    " WHERE conversation = :conversation AND user_id = :user FOR NO KEY UPDATE",
)
MOVE_CURSORS = Statement(
    "UPDATE conversation_member SET last_delivered_msg_seq = :delivered, last_read_msg_seq = :read"
    " WHERE conversation = :conversation AND user_id = :user"
)
STANDINGS = Query(
    Standing,
    "SELECT m.conversation, c.kind, c.head, m.joined_msg_seq, m.last_delivered_msg_seq"
    " FROM conversation_member m JOIN conversation c ON c.id = m.conversation"
    " WHERE m.user_id = :user AND m.conversation > :above ORDER BY m.conversation LIMIT :limit",
)


class Behind(Struct, frozen=True):
    """A user to whom a conversation may have more to say."""

    user_id: int
    conversation: int
    kind: int
    head: int
    members: int


BEHIND = Query(
    Behind,
    "SELECT m.user_id, m.conversation, c.kind, c.head, c.members FROM conversation_member m"
    " JOIN conversation c ON c.id = m.conversation"
    " WHERE m.user_id = ANY(:users) AND (c.head > m.last_delivered_msg_seq OR :all = 1)",
)

# -- seats

TAKE_SEAT = Query(
    int,
    "INSERT INTO chat_seat (user_id, generation) VALUES (:user, 1)"
    " ON CONFLICT (user_id) DO UPDATE SET generation = chat_seat.generation + 1 RETURNING generation",
)
SEATS = Query(tuple[int, int], "SELECT user_id, generation FROM chat_seat WHERE user_id = ANY(:users)")


class Page(Struct, frozen=True):
    """What a user may read of a conversation above a place, as one snapshot has it."""

    above: int
    """Where the page really begins: a member sees nothing of before joining."""
    head: int
    messages: list[Message]


def pair(view: Snapshot, low: int, high: int) -> int | None:
    return view.row(PAIR, low=low, high=high)


def page(view: Snapshot, conversation: int, user: int, above: int, limit: int = PAGE) -> Page | None:
    """The next messages for a connection, or None: the user is no member (any more)."""
    member = view.row(MEMBER, conversation=conversation, user=user)
    found = view.row(REVISION_AND_HEAD, id=conversation)
    if member is None or found is None:
        return None
    above = max(above, member.joined_seq)
    return Page(above, found[1], view.rows(ABOVE, conversation=conversation, above=above, limit=limit))


REVISION_AND_HEAD = Query(tuple[int, int], "SELECT revision, head FROM conversation WHERE id = :id")


def standings(view: Snapshot, user: int) -> list[Standing]:
    """How far a user has come everywhere."""
    found: list[Standing] = []
    above = 0
    while True:
        more = view.rows(STANDINGS, user=user, above=above, limit=STANDINGS_PAGE)
        found.extend(more)
        if len(more) < STANDINGS_PAGE:
            return found
        above = more[-1].conversation


def behind(view: Snapshot, users: list[int], *, every: bool) -> list[Behind]:
    """Of these users, the conversations with messages that are not acknowledged; `every`: all conversations."""
    return view.rows(BEHIND, users=users, all=int(every))


class Members(Struct, frozen=True):
    """Who is in a group, and which revision of its membership that is."""

    revision: int
    users: frozenset[int]


def members(view: Snapshot, conversation: int) -> Members | None:
    found = view.row(REVISION, id=conversation)
    if found is None:
        return None
    return Members(found[0], frozenset(view.rows(MEMBER_IDS, conversation=conversation)))


class Known(Struct, frozen=True):
    """A message's place, and whether the user who asks is a member there."""

    place: Place
    is_member: bool


def place(view: Snapshot, message: int, user: int) -> Known | None:
    found = view.row(PLACE, id=message)
    if found is None:
        return None
    member = view.row(MEMBER, conversation=found.conversation, user=user)
    return Known(found, member is not None)


def between(view: Snapshot, conversation: int, above: int, last: int) -> list[Message]:
    found = view.rows(ABOVE, conversation=conversation, above=above, limit=max(1, last - above))
    return [message for message in found if message.seq <= last]


def last_id(view: Snapshot) -> int:
    return view.row(LAST_ID) or 0


def seats(view: Snapshot, users: list[int]) -> list[tuple[int, int]]:
    return view.rows(SEATS, users=users)
