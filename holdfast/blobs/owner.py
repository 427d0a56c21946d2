"""Whose files are these? A place belongs to one database, and both know a word that says so.

Only removing files that no table knows depends on it: a second server that was pointed at this bucket by mistake
knows none of them, and must not tidy up.
"""

from __future__ import annotations

import secrets

from holdfast.blobs.incoming import Incoming
from holdfast.blobs.place import Place
from holdfast.errors import FileGone
from holdfast.store import Query, Statement, Transaction

MARK = "owner"

_MAKE = Statement("INSERT INTO meta (name, value) VALUES ('blobs.owner', :word) ON CONFLICT DO NOTHING")
_READ = Query(str, "SELECT value FROM meta WHERE name = 'blobs.owner'")


def our_word(tx: Transaction) -> str:
    """The database's word; the first to ask makes it."""
    tx.execute(_MAKE, word=secrets.token_hex(16))
    return tx.one(_READ)


def belongs_to(place: Place, incoming: Incoming, word: str) -> bool:
    """Whether the place says the same word; one that says none yet learns ours. Blocks."""
    try:
        content = place.open(MARK)
    except FileGone:
        file = incoming.create(f"{MARK}-{secrets.token_hex(8)}")
        try:
            file.append([word.encode()])
            place.keep(file.path, MARK)
        finally:
            file.discard()
        content = place.open(MARK)
    try:
        return b"".join(content.read(0, content.size)) == word.encode()
    finally:
        content.close()
