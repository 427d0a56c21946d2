"""The SQL of this room, by the table it is about. Locks: docs/rooms/blobs.md, "Order of locks"."""

from __future__ import annotations

from holdfast.blobs.model import Blob, Partial
from holdfast.store import Query, Statement

_BLOB = "sha256, md5, size, name, refs, created_ms, orphan_since_ms"

# blob
FIND = Query(Blob, f"SELECT {_BLOB} FROM blob WHERE sha256 = :sha256")
FIND_BY_MD5 = Query(Blob, f"SELECT {_BLOB} FROM blob WHERE md5 = :md5")
LOCK = Query(Blob, f"SELECT {_BLOB} FROM blob WHERE sha256 = :sha256 FOR NO KEY UPDATE")
LOCK_ALL = Query(
    Blob, f"SELECT {_BLOB} FROM blob WHERE sha256 = ANY(:sha256s) ORDER BY sha256 FOR NO KEY UPDATE"
)
LOCK_IF_FREE = Query(Blob, f"SELECT {_BLOB} FROM blob WHERE sha256 = :sha256 FOR UPDATE SKIP LOCKED")
INSERT = Statement(
    "INSERT INTO blob (sha256, md5, size, name, refs, created_ms, orphan_since_ms)"
    " VALUES (:sha256, :md5, :size, :name, 0, :now, :now) ON CONFLICT DO NOTHING"
)
DELETE = Statement("DELETE FROM blob WHERE sha256 = :sha256")
COUNT = Statement(
    """
    UPDATE blob SET refs = refs + counted.change,
        orphan_since_ms = CASE WHEN refs + counted.change = 0 THEN CAST(:now AS bigint) END
    --sqlite: FROM (SELECT value ->> 0 AS sha256, value ->> 1 AS change FROM json_each(:changes)) AS counted
    --postgresql: FROM (SELECT c ->> 0 AS sha256, (c ->> 1)::bigint AS change
    --postgresql:     FROM json_array_elements(CAST(:changes AS json)) AS c) AS counted
    WHERE blob.sha256 = counted.sha256
    """
)
PAGE = Query(Blob, f"SELECT {_BLOB} FROM blob WHERE sha256 > :above ORDER BY sha256 LIMIT :limit")
CONDEMNABLE = Query(
    str,
    """
    SELECT sha256 FROM blob WHERE orphan_since_ms IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM blob_claim WHERE blob_claim.sha256 = blob.sha256 AND until_ms > :now)
    ORDER BY sha256 LIMIT :limit
    """,
)

# blob_claim
CLAIM = Statement(
    """
    INSERT INTO blob_claim (sha256, holder, until_ms) VALUES (:sha256, :holder, :until)
    ON CONFLICT (sha256, holder) DO UPDATE SET until_ms = excluded.until_ms
        WHERE excluded.until_ms > blob_claim.until_ms
    """
)
UNCLAIM = Statement("DELETE FROM blob_claim WHERE sha256 = :sha256 AND holder = :holder")
UNCLAIM_ALL = Statement("DELETE FROM blob_claim WHERE sha256 = ANY(:sha256s) AND holder = :holder")
CLAIMED_UNTIL = Query(
    int, "SELECT until_ms FROM blob_claim WHERE sha256 = :sha256 ORDER BY until_ms DESC LIMIT 1"
)
DROP_ENDED_CLAIMS = Statement(
    """
    DELETE FROM blob_claim WHERE (sha256, holder) IN
        (SELECT sha256, holder FROM blob_claim WHERE until_ms <= :now LIMIT :limit FOR UPDATE SKIP LOCKED)
    """
)

# blob_file
ANNOUNCE = Statement("INSERT INTO blob_file (name, state, since_ms) VALUES (:name, 'arriving', :now)")
ARRIVED = Statement("DELETE FROM blob_file WHERE name = :name AND state = 'arriving'")
CONDEMN_ARRIVING = Statement(
    "UPDATE blob_file SET state = 'condemned', since_ms = :now WHERE name = :name AND state = 'arriving'"
)
CONDEMN_NAME = Statement("INSERT INTO blob_file (name, state, since_ms) VALUES (:name, 'condemned', :now)")
OLD_ARRIVING = Query(
    str,
    "SELECT name FROM blob_file WHERE state = 'arriving' AND since_ms <= :before ORDER BY name LIMIT :limit"
    " FOR UPDATE SKIP LOCKED",
)
CONDEMNED = Query(
    str,
    "SELECT name FROM blob_file WHERE state = 'condemned' AND name > :above ORDER BY name LIMIT :limit",
)
FORGET = Statement("DELETE FROM blob_file WHERE name = :name AND state = 'condemned'")
KNOWN_FILES = Query(
    str,
    """
    SELECT name FROM blob WHERE name = ANY(:names)
    UNION ALL SELECT name FROM blob_file WHERE name = ANY(:names)
    UNION ALL SELECT name FROM blob_piece WHERE name = ANY(:names)
    """,
)

# blob_gate
GATE = Query(int, "SELECT shut_until_ms FROM blob_gate WHERE id = 1 FOR SHARE")
SHUT_UNTIL = Query(int, "SELECT shut_until_ms FROM blob_gate WHERE id = 1")
SHUT_GATE = Statement("UPDATE blob_gate SET shut_until_ms = :until WHERE id = 1 AND shut_until_ms < :until")

# blob_partial, blob_piece
_PARTIAL = "id, holder, most, length, received, note, expires_ms, sha256"
PARTIAL = Query(Partial, f"SELECT {_PARTIAL} FROM blob_partial WHERE id = :id AND expires_ms > :now")
LOCK_PARTIAL = Query(
    Partial, f"SELECT {_PARTIAL} FROM blob_partial WHERE id = :id AND expires_ms > :now FOR NO KEY UPDATE"
)
BEGIN_PARTIAL = Statement(
    "INSERT INTO blob_partial (id, holder, most, length, received, note, expires_ms)"
    " VALUES (:id, :holder, :most, :length, 0, :note, :expires)"
)
GROW_PARTIAL = Statement("UPDATE blob_partial SET received = :received, expires_ms = :expires WHERE id = :id")
SET_LENGTH = Statement("UPDATE blob_partial SET length = :length WHERE id = :id")
FINISH_PARTIAL = Statement("UPDATE blob_partial SET sha256 = :sha256 WHERE id = :id")
DROP_PARTIAL = Statement("DELETE FROM blob_partial WHERE id = :id")
ENDED_PARTIALS = Query(
    str,
    "SELECT id FROM blob_partial WHERE expires_ms <= :now ORDER BY id LIMIT :limit FOR UPDATE SKIP LOCKED",
)
ADD_PIECE = Statement(
    "INSERT INTO blob_piece (partial, start, size, name) VALUES (:partial, :start, :size, :name)"
)
PIECES = Query(tuple[str, int], "SELECT name, size FROM blob_piece WHERE partial = :partial ORDER BY start")
DROP_PIECES = Statement("DELETE FROM blob_piece WHERE partial = :partial")
PIECE_PAGE = Query(
    tuple[str, int],
    "SELECT name, size FROM blob_piece WHERE name > :above ORDER BY name LIMIT :limit",
)
END_ALL_PARTIALS = Statement("UPDATE blob_partial SET expires_ms = :now WHERE expires_ms > :now")
