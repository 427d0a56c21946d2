-- The first answer to each POST that came with an Idempotency-Key; kept for a day.
CREATE TABLE http_idempotency (
    owner BIGINT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    answer BYTEA NOT NULL,
    made_ms BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
);
CREATE INDEX http_idempotency_made ON http_idempotency (made_ms);
