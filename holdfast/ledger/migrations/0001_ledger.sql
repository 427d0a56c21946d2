-- Shared account books. Where an entity stands in its members' feeds is the feed's; `space` is a book's number there.

CREATE TABLE ledger_book (
    id TEXT PRIMARY KEY,
    space BIGINT NOT NULL UNIQUE,
    creator BIGINT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    banner TEXT,
    is_initial BOOLEAN NOT NULL,
    crt_ms BIGINT NOT NULL,
    upd_ms BIGINT NOT NULL,
    deleted_ms BIGINT,           -- wall time; NULL while it lives. Its bills and images are dead with it
    emptied BOOLEAN NOT NULL     -- deleted, and its images' files were let go
);
CREATE INDEX ledger_book_deleted ON ledger_book (deleted_ms) WHERE deleted_ms IS NOT NULL;

CREATE TABLE ledger_bill (
    id TEXT PRIMARY KEY,
    space BIGINT NOT NULL,       -- the book's; never changes
    creator BIGINT NOT NULL,
    money TEXT NOT NULL,         -- decimal, its digits as they came
    type BIGINT NOT NULL,
    category TEXT NOT NULL,
    time TEXT NOT NULL,          -- as it came: a date, or RFC 3339
    time_ms BIGINT NOT NULL,     -- the same, to order by
    remark TEXT,
    images TEXT NOT NULL,        -- ids of its living images, in the order they came, a space between them
    crt_ms BIGINT NOT NULL,
    upd_ms BIGINT NOT NULL,
    deleted_ms BIGINT
)
--sqlite: WITHOUT ROWID
;
CREATE INDEX ledger_bill_listed ON ledger_bill (space, time_ms, id) WHERE deleted_ms IS NULL;
CREATE INDEX ledger_bill_deleted ON ledger_bill (deleted_ms) WHERE deleted_ms IS NOT NULL;

CREATE TABLE ledger_image (
    id TEXT PRIMARY KEY,
    space BIGINT NOT NULL,
    bill TEXT NOT NULL,
    creator BIGINT NOT NULL,
    sha256 TEXT NOT NULL,        -- the file; counted as a reference to it while this row lives
    md5 TEXT NOT NULL,
    size BIGINT NOT NULL,
    mime TEXT NOT NULL,
    ext TEXT NOT NULL,
    upd_ms BIGINT NOT NULL,
    deleted_ms BIGINT
);
CREATE INDEX ledger_image_living ON ledger_image (space) WHERE deleted_ms IS NULL;
CREATE INDEX ledger_image_deleted ON ledger_image (deleted_ms) WHERE deleted_ms IS NOT NULL;

-- How to join a book: at most one code for each.
CREATE TABLE ledger_code (
    code TEXT PRIMARY KEY,
    space BIGINT NOT NULL UNIQUE,
    expires_ms BIGINT NOT NULL
);
CREATE INDEX ledger_code_expires ON ledger_code (expires_ms);

-- Messages of the uplink that were taken, and what was answered.
CREATE TABLE ledger_uplink (
    author BIGINT NOT NULL,
    id TEXT NOT NULL,
    ack BYTEA NOT NULL,          -- empty only inside the transaction that takes the message
    taken_ms BIGINT NOT NULL,
    PRIMARY KEY (author, id)
)
--sqlite: WITHOUT ROWID
;
CREATE INDEX ledger_uplink_taken ON ledger_uplink (taken_ms);
