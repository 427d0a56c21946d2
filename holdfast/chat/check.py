"""What `holdfast check` proves of this room: generators of sentences, one per problem."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.store import Query, Snapshot

MOST = 100  # problems of one kind; nobody reads more

_GAPS = Query(
    tuple[int, int, int],
    "SELECT conversation, count(*), max(msg_seq) FROM message GROUP BY conversation"
    " HAVING count(*) <> max(msg_seq) OR min(msg_seq) <> 1 LIMIT :most",
)
_HEADS = Query(
    tuple[int, int, int],
    "SELECT c.id, c.head, coalesce(m.last, 0) FROM conversation c"
    " LEFT JOIN (SELECT conversation, max(msg_seq) AS last FROM message GROUP BY conversation) m"
    " ON m.conversation = c.id WHERE c.head <> coalesce(m.last, 0) LIMIT :most",
)
_LOOSE_MESSAGES = Query(
    tuple[int, int],
    "SELECT m.id, m.conversation FROM message m"
    " WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = m.conversation) LIMIT :most",
)
_UNKNOWN_SENDERS = Query(
    tuple[int, int],
    "SELECT m.id, m.sender FROM message m"
    " WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = m.sender) LIMIT :most",
)
_STRANGE_SENDERS = Query(
    tuple[int, int],
    "SELECT m.id, m.sender FROM message m JOIN single_chat s ON s.conversation = m.conversation"
    " WHERE m.sender <> s.low AND m.sender <> s.high LIMIT :most",
)
_REPLIES = Query(
    tuple[int, int],
    "SELECT m.id, m.reply_to FROM message m LEFT JOIN message r ON r.id = m.reply_to"
    " WHERE m.reply_to IS NOT NULL AND (r.id IS NULL OR r.conversation <> m.conversation"
    " OR r.sender <> m.reply_to_sender) LIMIT :most",
)
_REVOKED = Query(
    tuple[int, int],
    "SELECT id, conversation FROM message"
    " WHERE (status = 4) <> (revoked_ms IS NOT NULL) OR (status = 4 AND body <> '') LIMIT :most",
)
_CURSORS = Query(
    tuple[int, int],
    "SELECT m.user_id, m.conversation FROM conversation_member m JOIN conversation c ON c.id = m.conversation"
    " WHERE m.last_read_msg_seq > m.last_delivered_msg_seq OR m.last_delivered_msg_seq > c.head"
    " OR m.joined_msg_seq > m.last_read_msg_seq OR m.joined_msg_seq < 0 LIMIT :most",
)
_LOOSE_MEMBERS = Query(
    tuple[int, int],
    "SELECT m.user_id, m.conversation FROM conversation_member m"
    " WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = m.conversation)"
    " OR NOT EXISTS (SELECT 1 FROM users u WHERE u.id = m.user_id) LIMIT :most",
)
_COUNTS = Query(
    tuple[int, int, int],
    "SELECT c.id, c.members, count(m.user_id) FROM conversation c"
    " LEFT JOIN conversation_member m ON m.conversation = c.id"
    " GROUP BY c.id, c.members HAVING c.members <> count(m.user_id) LIMIT :most",
)
_PAIRS = Query(
    tuple[int, int, int],
    "SELECT s.conversation, s.low, s.high FROM single_chat s"
    " WHERE s.low >= s.high OR NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = s.conversation AND c.kind = 1)"
    " OR (SELECT count(*) FROM conversation_member m WHERE m.conversation = s.conversation"
    " AND (m.user_id = s.low OR m.user_id = s.high)) <> 2 LIMIT :most",
)
_NEITHER = Query(
    tuple[int, int],
    "SELECT c.id, c.kind FROM conversation c LEFT JOIN single_chat s ON s.conversation = c.id"
    " LEFT JOIN chat_group g ON g.id = c.id"
    " WHERE (c.kind = 1) <> (s.conversation IS NOT NULL) OR (c.kind = 2) <> (g.id IS NOT NULL) LIMIT :most",
)
_OWNERS = Query(
    tuple[int, int],
    "SELECT c.id, count(m.user_id) FROM conversation c"
    " LEFT JOIN conversation_member m ON m.conversation = c.id AND m.role = 2"
    " WHERE c.kind = 2 AND c.members > 0 GROUP BY c.id HAVING count(m.user_id) <> 1 LIMIT :most",
)
_MENTIONS = Query(
    tuple[int, int],
    "SELECT a.conversation, a.msg_seq FROM message_mention a WHERE NOT EXISTS (SELECT 1 FROM message m"
    " WHERE m.conversation = a.conversation AND m.msg_seq = a.msg_seq AND m.status = 1) LIMIT :most",
)
_PARTIES = Query(
    tuple[int, int],
    "SELECT p.user_id, p.call_id FROM call_party p WHERE NOT EXISTS (SELECT 1 FROM call_record r"
    " WHERE r.id = p.call_id AND r.state IN (1, 2) AND (r.caller = p.user_id OR r.callee = p.user_id)) LIMIT :most",
)
_CALLS = Query(
    tuple[int, int],
    "SELECT r.id, r.state FROM call_record r WHERE r.state IN (1, 2)"
    " AND (SELECT count(*) FROM call_party p WHERE p.call_id = r.id) <> 2"
    " OR (r.state IN (1, 2)) <> (r.ended_ms IS NULL) LIMIT :most",
)

_PAIRS_OF_NUMBERS = (
    (_LOOSE_MESSAGES, "message {}: its conversation {} is missing"),
    (_UNKNOWN_SENDERS, "message {}: its sender {} is missing"),
    (_STRANGE_SENDERS, "message {}: its sender {} is not one of the two who talk there"),
    (_REPLIES, "message {}: it replies to {}, which is not in its conversation"),
    (_REVOKED, "message {} of the conversation {}: it is half revoked"),
    (
        _CURSORS,
        "user {}: the cursors in the conversation {} are out of order (joined ≤ read ≤ delivered ≤ head)",
    ),
    (_LOOSE_MEMBERS, "user {}, member of the conversation {}: one of the two is missing"),
    (_NEITHER, "conversation {}: it is of kind {}, and not what that says"),
    (_OWNERS, "group {}: it has {} owners, not one"),
    (_MENTIONS, "a mention in the conversation {} refers to the message {}, which is not there"),
    (_PARTIES, "user {}: counts as being in the call {}, which is over"),
    (_CALLS, "call {}: its state {} does not go with who is in it, or when it ended"),
)
_TRIPLES = (
    (_GAPS, "conversation {}: its {} messages go up to msgSeq {}: there are gaps"),
    (_HEADS, "conversation {}: its head is {}, its last message is {}"),
    (_COUNTS, "conversation {}: it counts {} members and has {}"),
    (_PAIRS, "conversation {} of the users {} and {}: it is not theirs"),
)


def problems(view: Snapshot) -> Iterator[str]:
    """Every problem of conversations, messages, cursors and calls."""
    for query, sentence in _TRIPLES:
        for three in view.rows(query, most=MOST):
            yield sentence.format(*three)
    for query_of_two, sentence in _PAIRS_OF_NUMBERS:
        for two in view.rows(query_of_two, most=MOST):
            yield sentence.format(*two)
