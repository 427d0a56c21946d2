-- One row per user who ever pushed: the version under which everything of theirs is numbered. Whoever pushes locks it.
CREATE TABLE library (
    user_id BIGINT PRIMARY KEY,
    version BIGINT NOT NULL,
    modified_ms BIGINT NOT NULL
)
--postgresql: WITH (fillfactor = 50)
;

-- When a user last pulled. Apart from `library`, so that a reader never waits for a writer.
CREATE TABLE library_sync (
    user_id BIGINT PRIMARY KEY,
    synced_ms BIGINT NOT NULL
);

-- Scores, instrument scores, setlists and their scores. To the server they are the same thing: a row with a key that
-- is its own while it lives, with parents, perhaps a PDF, and data that is given back as it came. Dead rows stay.
CREATE TABLE library_entity (
    id BIGINT PRIMARY KEY,       -- the wire's serverId
    user_id BIGINT NOT NULL,
    kind SMALLINT NOT NULL CHECK (kind BETWEEN 1 AND 4),
    version BIGINT NOT NULL,     -- the library's, at its latest change
    key TEXT NOT NULL,           -- what no other living row of this user may have
    score_id BIGINT,             -- of an instrument score, and of a setlist's score
    setlist_id BIGINT,           -- of a setlist's score
    pdf_md5 TEXT,                -- counted as a reference to that file; NULL when it has none, or is dead
    data TEXT NOT NULL,          -- a JSON object
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL,
    deleted_ms BIGINT,           -- NULL while it lives
    CHECK (deleted_ms IS NULL OR pdf_md5 IS NULL)
);
CREATE UNIQUE INDEX library_entity_version ON library_entity (user_id, version);
CREATE UNIQUE INDEX library_entity_key ON library_entity (user_id, key) WHERE deleted_ms IS NULL;
CREATE INDEX library_entity_grave ON library_entity (user_id, key) WHERE deleted_ms IS NOT NULL;
CREATE INDEX library_entity_score ON library_entity (score_id)
    WHERE score_id IS NOT NULL AND deleted_ms IS NULL;
CREATE INDEX library_entity_setlist ON library_entity (setlist_id)
    WHERE setlist_id IS NOT NULL AND deleted_ms IS NULL;
CREATE INDEX library_entity_pdf ON library_entity (pdf_md5, user_id) WHERE pdf_md5 IS NOT NULL;

-- The names that clients gave to rows (their entityIds). Several devices may have named the same row.
CREATE TABLE library_alias (
    user_id BIGINT NOT NULL,
    entity_id TEXT NOT NULL,
    kind SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    PRIMARY KEY (user_id, entity_id, kind)
)
--sqlite: WITHOUT ROWID
;

-- Who has shown that they have the bytes of a file: by sending them, or by a proof.
CREATE TABLE library_possession (
    user_id BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (user_id, sha256)
)
--sqlite: WITHOUT ROWID
;

-- The next serverId that nobody has. Taken in blocks, in transactions of their own, so that pushes do not meet here.
CREATE TABLE library_next_id (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    next BIGINT NOT NULL
);
INSERT INTO library_next_id (one, next) VALUES (1, 1);
