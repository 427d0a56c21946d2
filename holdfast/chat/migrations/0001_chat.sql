-- Conversations, their messages, and how far each member has come.

-- One row per conversation. Its lock makes the order of msgSeq the order of commits.
CREATE TABLE conversation (
    id BIGINT PRIMARY KEY,
    kind SMALLINT NOT NULL,          -- 1 single, 2 group
    head BIGINT NOT NULL,            -- the msgSeq of the latest message: 1, 2, 3, … without a gap
    revision BIGINT NOT NULL,        -- which membership this is; every join and every leave makes the next
    members BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL       -- wall time of the latest message
)
--postgresql: WITH (fillfactor = 70)
;

-- Which conversation two people share; `low` is the smaller of the two ids.
CREATE TABLE single_chat (
    low BIGINT NOT NULL,
    high BIGINT NOT NULL,
    conversation BIGINT NOT NULL UNIQUE,
    PRIMARY KEY (low, high)
)
--sqlite: WITHOUT ROWID
;

CREATE TABLE chat_group (
    id BIGINT PRIMARY KEY,           -- of its conversation
    name TEXT NOT NULL,
    code TEXT NOT NULL UNIQUE,       -- who knows it may join
    made_ms BIGINT NOT NULL
);

-- The truth about delivered and read: cursors that only move forward.
CREATE TABLE conversation_member (
    conversation BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    role SMALLINT NOT NULL,          -- 0 member, 1 admin, 2 owner
    muted_until_ms BIGINT NOT NULL,  -- wall time; 0 not muted, -1 until somebody lifts it
    joined_ms BIGINT NOT NULL,
    joined_msg_seq BIGINT NOT NULL,  -- where the conversation stood: what is above is theirs to see
    last_delivered_msg_seq BIGINT NOT NULL,
    last_read_msg_seq BIGINT NOT NULL,
    PRIMARY KEY (conversation, user_id)
--sqlite: ) WITHOUT ROWID;
--postgresql: ) WITH (fillfactor = 70);
CREATE INDEX conversation_member_by_user ON conversation_member (user_id, conversation);

CREATE TABLE message (
    id BIGINT PRIMARY KEY,           -- serverMsgId; begins with the time, so new rows lie together
    conversation BIGINT NOT NULL,
    msg_seq BIGINT NOT NULL,
    sender BIGINT NOT NULL,
    client_msg_id TEXT NOT NULL,
    msg_type TEXT NOT NULL,
    body TEXT NOT NULL,
    status SMALLINT NOT NULL,        -- 1 saved, 4 revoked (5 received, 6 dropped: reserved); never says who got it
    mentions TEXT,                   -- user ids as a JSON list
    reply_to BIGINT,
    reply_to_sender BIGINT,
    sent_ms BIGINT NOT NULL,
    revoked_ms BIGINT
);
CREATE UNIQUE INDEX message_by_seq ON message (conversation, msg_seq);
CREATE UNIQUE INDEX message_by_client_id ON message (sender, client_msg_id);

-- Whose attention a message asks for: those it mentions, and whoever it replies to.
CREATE TABLE message_mention (
    conversation BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    msg_seq BIGINT NOT NULL,
    PRIMARY KEY (conversation, user_id, msg_seq)
)
--sqlite: WITHOUT ROWID
;

-- For audits alone (`chat.ack_detail`): the cursors above decide.
CREATE TABLE message_ack (
    message BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    ack_type SMALLINT NOT NULL,      -- 1 saved, 2 delivered, 3 read
    device_id TEXT NOT NULL,
    acked_ms BIGINT NOT NULL,
    PRIMARY KEY (message, user_id, ack_type, device_id)
)
--sqlite: WITHOUT ROWID
;

-- Which connection of a user is the newest, when several processes share the database.
CREATE TABLE chat_seat (
    user_id BIGINT PRIMARY KEY,
    generation BIGINT NOT NULL
);

CREATE TABLE call_record (
    id BIGINT PRIMARY KEY,
    caller BIGINT NOT NULL,
    callee BIGINT NOT NULL,
    kind TEXT NOT NULL,
    state SMALLINT NOT NULL,         -- 1 ringing, 2 accepted, 3 ended, 4 rejected, 5 cancelled, 6 missed, 7 busy, 8 offline
    made_ms BIGINT NOT NULL,
    accepted_ms BIGINT,
    ended_ms BIGINT,
    why TEXT
);
CREATE INDEX call_record_by_caller ON call_record (caller, id);
CREATE INDEX call_record_by_callee ON call_record (callee, id);

-- Who is in a call at this moment: nobody is in two.
CREATE TABLE call_party (
    user_id BIGINT PRIMARY KEY,
    call_id BIGINT NOT NULL,
    seen_ms BIGINT NOT NULL
);
CREATE INDEX call_party_by_call ON call_party (call_id);
