-- Every entity of the library: scores (1), instrument scores (2), setlists (3), their entries (4).
--   id         the client's own name for it (a UUID), also on the wire; server_id once the server has named it
--   score_id, setlist_id   its parents, by their id here
--   key        what no other living row may have, made of ids here
--   data       its fields as JSON, those that we do not know too, without its parents
--   state      0 synced, 1 new, 2 changed, 3 deleted here and not yet there
--   known      0 never sent, 1 sent but never answered, 2 the server has it
CREATE TABLE library_row (
    id TEXT PRIMARY KEY,
    kind INTEGER NOT NULL,
    server_id INTEGER,
    version INTEGER NOT NULL DEFAULT 0,
    score_id TEXT,
    setlist_id TEXT,
    pdf TEXT,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    state INTEGER NOT NULL,
    known INTEGER NOT NULL,
    rev INTEGER NOT NULL DEFAULT 0,
    seen INTEGER NOT NULL DEFAULT 0,
    base TEXT,
    refusal TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX library_by_server ON library_row (server_id) WHERE server_id IS NOT NULL;
CREATE INDEX library_by_key ON library_row (key);
CREATE INDEX library_of_score ON library_row (score_id) WHERE score_id IS NOT NULL;
CREATE INDEX library_of_setlist ON library_row (setlist_id) WHERE setlist_id IS NOT NULL;
CREATE INDEX library_by_pdf ON library_row (pdf) WHERE pdf IS NOT NULL;
CREATE INDEX library_pending ON library_row (kind, id) WHERE state <> 0;

-- Contents that parts refer to and that this replica brought: has the server got them?
CREATE TABLE library_file (
    md5 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    name TEXT NOT NULL,
    uploaded INTEGER NOT NULL DEFAULT 0,
    upload_url TEXT,
    refusal TEXT
) WITHOUT ROWID;

-- The push that is on its way: sent again under the same key until it is answered.
CREATE TABLE library_push (
    key TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    rows TEXT NOT NULL
) WITHOUT ROWID;
