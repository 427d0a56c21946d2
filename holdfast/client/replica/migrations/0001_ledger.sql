-- What belongs to the replica as a whole: who its user is, his session, this device's name.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- How far a feed has been followed. `since` and `epoch` move only with the page they belong to. While `resetting` is
-- not 0 a pull of everything is under way: rows whose `seen` is lower go when its last page is applied.
CREATE TABLE feed (
    name TEXT PRIMARY KEY,
    since INTEGER NOT NULL DEFAULT 0,
    epoch TEXT NOT NULL DEFAULT '',
    generation INTEGER NOT NULL DEFAULT 0,
    resetting INTEGER NOT NULL DEFAULT 0,
    pulled_ms INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What every row of the ledger carries besides what it says:
--   version   where the server's state of it stands in our feed, as far as we were told; 0: never
--   known     0 never sent, 1 sent but never answered, 2 the server has it, 3 the server had it and has it no more
--   synced    0 not synced, 1 synced, 2 changed since it was synced, 3 on its way (2 and 3: over MQTT only)
--   deleted   1: hidden here, and gone when the server says so
--   rev       counts local changes; sent_rev the one that was sent last, msg_id under which name, sent_ms when
--   seen      the generation of the pull of everything that met it last
--   base      the server's state, while ours is another one
--   refusal   why the server does not take it: parked until it is changed or given up
CREATE TABLE book (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    banner TEXT,
    crt_user TEXT NOT NULL,
    members TEXT NOT NULL,
    is_initial INTEGER,
    crt_time TEXT NOT NULL,
    upd_time TEXT NOT NULL,
    version INTEGER NOT NULL,
    known INTEGER NOT NULL,
    synced INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0,
    rev INTEGER NOT NULL DEFAULT 0,
    sent_rev INTEGER NOT NULL DEFAULT 0,
    sent_ms INTEGER NOT NULL DEFAULT 0,
    msg_id TEXT,
    seen INTEGER NOT NULL,
    base TEXT,
    refusal TEXT
) WITHOUT ROWID;
CREATE INDEX book_unsynced ON book (id) WHERE synced <> 1;

CREATE TABLE bill (
    id TEXT PRIMARY KEY,
    book_id TEXT NOT NULL,
    money TEXT NOT NULL,
    type INTEGER NOT NULL,
    category TEXT NOT NULL,
    time TEXT NOT NULL,
    remark TEXT,
    crt_user TEXT NOT NULL,
    crt_time TEXT NOT NULL,
    upd_time TEXT NOT NULL,
    version INTEGER NOT NULL,
    known INTEGER NOT NULL,
    synced INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0,
    rev INTEGER NOT NULL DEFAULT 0,
    sent_rev INTEGER NOT NULL DEFAULT 0,
    sent_ms INTEGER NOT NULL DEFAULT 0,
    msg_id TEXT,
    seen INTEGER NOT NULL,
    base TEXT,
    refusal TEXT
) WITHOUT ROWID;
CREATE INDEX bill_in_book ON bill (book_id, time);
CREATE INDEX bill_unsynced ON bill (id) WHERE synced <> 1;

CREATE TABLE image (
    id TEXT PRIMARY KEY,
    bill_id TEXT NOT NULL,
    book_id TEXT NOT NULL,
    md5 TEXT NOT NULL,
    size INTEGER NOT NULL,
    mime TEXT NOT NULL,
    ext TEXT NOT NULL,
    online_path TEXT NOT NULL,
    crt_user TEXT NOT NULL,
    upd_time TEXT NOT NULL,
    version INTEGER NOT NULL,
    known INTEGER NOT NULL,
    synced INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0,
    rev INTEGER NOT NULL DEFAULT 0,
    sent_rev INTEGER NOT NULL DEFAULT 0,
    sent_ms INTEGER NOT NULL DEFAULT 0,
    msg_id TEXT,
    seen INTEGER NOT NULL,
    base TEXT,
    refusal TEXT
) WITHOUT ROWID;
CREATE INDEX image_of_bill ON image (bill_id);
CREATE INDEX image_in_book ON image (book_id);
CREATE INDEX image_by_md5 ON image (md5);
CREATE INDEX image_unsynced ON image (id) WHERE synced <> 1;

-- Deletions that a notification told before the pull came to them: an older notification must not bring them back.
CREATE TABLE tombstone (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- Local changes that can never be delivered, because what they belong to is gone: kept until the app has seen them.
CREATE TABLE lost (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    reason TEXT NOT NULL,
    lost_ms INTEGER NOT NULL
);
