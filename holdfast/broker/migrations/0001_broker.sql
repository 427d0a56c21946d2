-- Sessions that outlive their connections, and what waits for them. A `key` is a name as it is, or shortened with a
-- hash when it is long: client ids, filters and topics may have 65,535 bytes, which no index takes.

CREATE TABLE broker_session (
    id BIGINT PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    client_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    is_server BOOLEAN NOT NULL,
    version INTEGER NOT NULL,
    expiry_s BIGINT,
    created_ms BIGINT NOT NULL,
    disconnected_ms BIGINT,
    sent BIGINT NOT NULL
);

CREATE TABLE broker_subscription (
    session_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    filter TEXT NOT NULL,
    qos INTEGER NOT NULL,
    no_local BOOLEAN NOT NULL,
    retain_as_published BOOLEAN NOT NULL,
    identifier BIGINT NOT NULL,
    PRIMARY KEY (session_id, key)
);

-- Packet ids of QoS 2 messages that arrived and are not released.
CREATE TABLE broker_inbound (
    session_id BIGINT NOT NULL,
    packet_id INTEGER NOT NULL,
    PRIMARY KEY (session_id, packet_id)
);

-- A message that several queues need, or that is retained.
CREATE TABLE broker_message (
    id BIGINT PRIMARY KEY,
    topic TEXT NOT NULL,
    payload BYTEA NOT NULL,
    properties BYTEA
);

-- A session's queue, in the order of `number`. The message is here, or in broker_message.
CREATE TABLE broker_queue (
    session_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    qos INTEGER NOT NULL,
    retain BOOLEAN NOT NULL,
    released BOOLEAN NOT NULL,
    replay BOOLEAN NOT NULL,
    size BIGINT NOT NULL,
    expires_ms BIGINT,
    identifiers TEXT,
    share TEXT,
    message_id BIGINT,
    topic TEXT,
    payload BYTEA,
    properties BYTEA,
    PRIMARY KEY (session_id, number),
    CHECK ((message_id IS NULL) = (topic IS NOT NULL))
--sqlite: ) WITHOUT ROWID;
--postgresql: );
CREATE INDEX broker_queue_message ON broker_queue (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX broker_queue_expiry ON broker_queue (expires_ms) WHERE expires_ms IS NOT NULL;

CREATE TABLE broker_retained (
    key TEXT PRIMARY KEY,
    message_id BIGINT NOT NULL,
    qos INTEGER NOT NULL,
    stored_ms BIGINT NOT NULL,
    expires_ms BIGINT
);
CREATE INDEX broker_retained_message ON broker_retained (message_id);

-- The wills of clients that are connected, or whose delay is running.
CREATE TABLE broker_will (
    key TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    is_server BOOLEAN NOT NULL,
    topic TEXT NOT NULL,
    payload BYTEA NOT NULL,
    properties BYTEA,
    qos INTEGER NOT NULL,
    retain BOOLEAN NOT NULL,
    delay_s BIGINT NOT NULL,
    due_ms BIGINT
);

-- Sessions that have ended while messages waited for them: their queues are removed in turns.
CREATE TABLE broker_gone (
    session_id BIGINT PRIMARY KEY,
    sent BIGINT NOT NULL
);

-- The last batch that was committed, and when this broker was last known to run.
CREATE TABLE broker_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    batch BIGINT NOT NULL,
    beat_ms BIGINT NOT NULL
);
INSERT INTO broker_state (id, batch, beat_ms) VALUES (1, 0, 0);
