-- What the whole store knows about itself: its epoch, the secret of its tokens, the names of its keys.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
