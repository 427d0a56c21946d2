-- A blob is content, by its SHA-256, with the name of the file that holds it. The row is there only while the
-- file is: the protocol is in docs/rooms/blobs.md.
CREATE TABLE blob (
    sha256 TEXT PRIMARY KEY,
    md5 TEXT NOT NULL UNIQUE,
    size BIGINT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    refs BIGINT NOT NULL DEFAULT 0 CHECK (refs >= 0),
    created_ms BIGINT NOT NULL,
    orphan_since_ms BIGINT,
    CHECK ((refs = 0) = (orphan_since_ms IS NOT NULL))
);
CREATE INDEX blob_orphans ON blob (orphan_since_ms) WHERE orphan_since_ms IS NOT NULL;

-- Who keeps a blob that nothing refers to yet, and until when.
CREATE TABLE blob_claim (
    sha256 TEXT NOT NULL REFERENCES blob (sha256) ON DELETE CASCADE,
    holder TEXT NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (sha256, holder)
);
CREATE INDEX blob_claim_ends ON blob_claim (until_ms);

-- Files that may exist but hold no blob: not yet (arriving) or not any more (condemned).
CREATE TABLE blob_file (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('arriving', 'condemned')),
    since_ms BIGINT NOT NULL
);
CREATE INDEX blob_file_by_age ON blob_file (state, since_ms);

-- While the gate is shut nothing is condemned: a backup walks through.
CREATE TABLE blob_gate (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    shut_until_ms BIGINT NOT NULL
);
INSERT INTO blob_gate (id, shut_until_ms) VALUES (1, 0);

-- Uploads that continue where they stopped, as the files that arrived so far.
CREATE TABLE blob_partial (
    id TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    most BIGINT NOT NULL,
    length BIGINT,
    received BIGINT NOT NULL DEFAULT 0,
    note TEXT NOT NULL,
    expires_ms BIGINT NOT NULL,
    sha256 TEXT
);
CREATE INDEX blob_partial_ends ON blob_partial (expires_ms);
CREATE TABLE blob_piece (
    partial TEXT NOT NULL REFERENCES blob_partial (id) ON DELETE CASCADE,
    start BIGINT NOT NULL,
    size BIGINT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    PRIMARY KEY (partial, start)
);
