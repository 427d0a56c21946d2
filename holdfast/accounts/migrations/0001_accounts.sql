-- Users, and the refresh tokens of their logins.
CREATE TABLE users (
    id BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    password_sv BIGINT NOT NULL,
    is_admin BOOLEAN NOT NULL,
    disabled BOOLEAN NOT NULL,
    sv BIGINT NOT NULL,
    sv_revision BIGINT NOT NULL,
    made_ms BIGINT NOT NULL
);
CREATE INDEX users_by_sv_revision ON users (sv_revision);

-- One row: the last number given to a raised sv. Its lock makes the order of numbers the order of commits.
CREATE TABLE sv_counter (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    revision BIGINT NOT NULL
);
INSERT INTO sv_counter (id, revision) VALUES (1, 0);

-- One chain per login; it is good as long as it has not ended and its sv is the user's.
CREATE TABLE refresh_chain (
    id BIGINT PRIMARY KEY,
    user_id BIGINT NOT NULL REFERENCES users (id),
    sv BIGINT NOT NULL,
    made_ms BIGINT NOT NULL,
    expires_ms BIGINT NOT NULL,
    ended_ms BIGINT
);
CREATE INDEX refresh_chain_by_expiry ON refresh_chain (expires_ms);

-- Tokens that were exchanged stay until they expire, so that their reuse is noticed.
CREATE TABLE refresh_token (
    hash BYTEA PRIMARY KEY,
    chain_id BIGINT NOT NULL REFERENCES refresh_chain (id),
    expires_ms BIGINT NOT NULL,
    exchanged_ms BIGINT
--sqlite: ) WITHOUT ROWID;
--postgresql: );
CREATE INDEX refresh_token_by_chain ON refresh_token (chain_id);
CREATE INDEX refresh_token_by_expiry ON refresh_token (expires_ms);
