-- A conversation: with a person ('u:' and his id) or in a group ('g:' and its id).
--   base        what lies at or below it is not ours to see
--   contiguous  everything from base to here is stored: as far as we may acknowledge
--   head        the highest msgSeq that we have heard of
--   acked       as far as the server was told that we have it; seen, seen_told: that our user has read it
--   their_delivered, their_read   how far the other one is (single chats)
CREATE TABLE chat_conversation (
    id TEXT PRIMARY KEY,
    base INTEGER NOT NULL DEFAULT 0,
    contiguous INTEGER NOT NULL DEFAULT 0,
    head INTEGER NOT NULL DEFAULT 0,
    acked INTEGER NOT NULL DEFAULT 0,
    seen INTEGER NOT NULL DEFAULT 0,
    seen_told INTEGER NOT NULL DEFAULT 0,
    their_delivered INTEGER NOT NULL DEFAULT 0,
    their_read INTEGER NOT NULL DEFAULT 0,
    updated_ms INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL DEFAULT '',
    left_it INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE chat_message (
    conversation TEXT NOT NULL,
    seq INTEGER NOT NULL,
    server_msg_id TEXT NOT NULL,
    client_msg_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    msg_type TEXT NOT NULL,
    body TEXT,
    ts INTEGER NOT NULL,
    mentions TEXT NOT NULL DEFAULT '[]',
    reply_to TEXT,
    PRIMARY KEY (conversation, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX chat_message_by_id ON chat_message (server_msg_id);

-- What is to be sent, in order; `state` 0 queued, 1 sent and not answered, 2 refused for good.
CREATE TABLE chat_outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    client_msg_id TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL,
    msg_type TEXT NOT NULL,
    body TEXT NOT NULL,
    mentions TEXT NOT NULL,
    reply_to TEXT,
    important INTEGER NOT NULL,
    made_ms INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT ''
);
CREATE INDEX chat_outbox_in ON chat_outbox (conversation, number);

-- Revocations that are to be sent.
CREATE TABLE chat_revocation (
    server_msg_id TEXT PRIMARY KEY
) WITHOUT ROWID;
