-- The kernel: what happened in a space, and how it appears to each owner. No index here is for comfort: each
-- one is paid for by every write.

-- One row per space, locked by whoever writes to it.
CREATE TABLE feed_space (
    space BIGINT PRIMARY KEY,
    seq BIGINT NOT NULL,         -- changes so far
    cseq BIGINT NOT NULL,        -- entities so far
    head BIGINT NOT NULL,        -- position of the latest change
    live BIGINT NOT NULL,        -- entities alive now
    digest BIGINT NOT NULL,      -- sum of their hashes modulo 2^64, its bits read as a signed number
    swept BIGINT NOT NULL,       -- entities whose tombstone is gone: live + tombstones + swept = cseq
    closed_ms BIGINT             -- wall time; NULL while it is open
)
--postgresql: WITH (fillfactor = 70)
;
CREATE INDEX feed_space_closed ON feed_space (closed_ms) WHERE closed_ms IS NOT NULL;

-- One row per entity: its latest state. Within a space the order of `seq` is the order of `pos`.
CREATE TABLE feed_log (
    space BIGINT NOT NULL,
    seq BIGINT NOT NULL,         -- which change of the space was its latest
    pos BIGINT NOT NULL,         -- the position that members saw it at
    cseq BIGINT NOT NULL,        -- which entity of the space it was; never changes
    kind SMALLINT NOT NULL,
    entity TEXT NOT NULL,
    fresh BOOLEAN NOT NULL,      -- its latest change brought it to life
    died_ms BIGINT,              -- wall time; NULL while it lives
    PRIMARY KEY (space, seq)     -- a page is one stretch of this
)
--sqlite: WITHOUT ROWID
;
CREATE UNIQUE INDEX feed_log_pos ON feed_log (space, pos);
CREATE UNIQUE INDEX feed_log_cseq ON feed_log (space, cseq);
-- the id comes first because ids begin with the time: new ones of all spaces then share a page of the index
CREATE UNIQUE INDEX feed_log_entity ON feed_log (entity, kind, space);
CREATE INDEX feed_log_died ON feed_log (died_ms) WHERE died_ms IS NOT NULL;

-- How a space's log appears in an owner's feed.
CREATE TABLE feed_link (
    owner BIGINT NOT NULL,
    space BIGINT NOT NULL,
    inside BOOLEAN NOT NULL,
    base BIGINT NOT NULL,
    cut BIGINT NOT NULL,
    left_ms BIGINT,              -- wall time; NULL while inside
    PRIMARY KEY (owner, space)
)
--sqlite: WITHOUT ROWID
;
CREATE INDEX feed_link_members ON feed_link (space, inside, owner);
CREATE INDEX feed_link_left ON feed_link (left_ms) WHERE left_ms IS NOT NULL;

-- The head of each feed.
CREATE TABLE feed_owner (
    owner BIGINT PRIMARY KEY,
    last BIGINT NOT NULL
)
--postgresql: WITH (fillfactor = 70)
;
