"""The SQL of this room, by the table it is about. Whoever writes to a library has locked its row first."""

from __future__ import annotations

from msgspec import Struct

from holdfast.blobs import Blob
from holdfast.library.model import Alias, Row
from holdfast.store import Query, Statement

_ROW = "id, kind, version, key, score_id, setlist_id, pdf_md5, data, created_ms, updated_ms, deleted_ms"

# library
LOCK = Query(int, "SELECT version FROM library WHERE user_id = :user FOR NO KEY UPDATE")
BEGIN = Statement(
    "INSERT INTO library (user_id, version, modified_ms) VALUES (:user, 0, :now) ON CONFLICT DO NOTHING"
)
MOVE = Statement("UPDATE library SET version = :version, modified_ms = :now WHERE user_id = :user")
VERSION = Query(int, "SELECT version FROM library WHERE user_id = :user")

# library_sync
SYNCED = Statement(
    """
    INSERT INTO library_sync (user_id, synced_ms)
    --sqlite: SELECT value ->> 0, value ->> 1 FROM json_each(:moments) WHERE true
    --postgresql: SELECT (m ->> 0)::bigint, (m ->> 1)::bigint FROM json_array_elements(CAST(:moments AS json)) AS m
    ON CONFLICT (user_id) DO UPDATE SET synced_ms = excluded.synced_ms
        WHERE excluded.synced_ms > library_sync.synced_ms
    """
)

# library_entity
PAGE = Query(
    Row,
    f"SELECT {_ROW} FROM library_entity WHERE user_id = :user AND version > :after ORDER BY version LIMIT :limit",
)
LIVING = Query(
    tuple[int, int, int],
    "SELECT kind, id, version FROM library_entity WHERE user_id = :user AND deleted_ms IS NULL",
)
SIZES = Query(
    tuple[int, int],
    """
    SELECT version, octet_length(data) FROM library_entity WHERE user_id = :user AND version > :after
    ORDER BY version LIMIT :limit
    """,
)
# (here and in CHILDREN: left to itself, SQLite reads all that the user has and sifts it by the ids)


def _weight(where: str) -> Query[int]:
    """Bytes of data in the rows of a query, before anybody takes them into memory."""
    return Query(
        int,
        f"SELECT CAST(coalesce(sum(octet_length(data)), 0) AS bigint) FROM library_entity WHERE user_id = :user AND {where}",
    )


class Rows(Struct, frozen=True):
    """Rows, and how heavy they are."""

    rows: Query[Row]
    weight: Query[int]


BY_ID = Rows(
    Query(Row, f"SELECT {_ROW} FROM library_entity WHERE user_id = :user AND id = ANY(:ids)"),
    _weight("id = ANY(:ids)"),
)
BY_KEY = Rows(
    # (twice, because each of the two indices holds either the living or the dead)
    Query(
        Row,
        f"""
        SELECT {_ROW} FROM library_entity WHERE user_id = :user AND key = ANY(:keys) AND deleted_ms IS NULL
        UNION ALL
        SELECT {_ROW} FROM library_entity WHERE user_id = :user AND key = ANY(:keys) AND deleted_ms IS NOT NULL
        """,
    ),
    Query(
        int,
        """
        SELECT CAST(sum(weight) AS bigint) FROM (
            SELECT coalesce(sum(octet_length(data)), 0) AS weight FROM library_entity
                WHERE user_id = :user AND key = ANY(:keys) AND deleted_ms IS NULL
            UNION ALL
            SELECT coalesce(sum(octet_length(data)), 0) AS weight FROM library_entity
                WHERE user_id = :user AND key = ANY(:keys) AND deleted_ms IS NOT NULL
        ) AS weighed
        """,
    ),
)
INSTRUMENT_SCORES_AND_ENTRIES = Rows(
    Query(
        Row,
        f"SELECT {_ROW} FROM library_entity WHERE user_id = :user AND deleted_ms IS NULL AND score_id = ANY(:ids)",
    ),
    _weight("deleted_ms IS NULL AND score_id = ANY(:ids)"),
)
ENTRIES = Rows(
    Query(
        Row,
        f"SELECT {_ROW} FROM library_entity WHERE user_id = :user AND deleted_ms IS NULL AND setlist_id = ANY(:ids)",
    ),
    _weight("deleted_ms IS NULL AND setlist_id = ANY(:ids)"),
)
LIFT = Statement("UPDATE library_entity SET pdf_md5 = NULL, deleted_ms = :now WHERE id = ANY(:ids)")
WRITE = Statement(
    """
    INSERT INTO library_entity (user_id, id, kind, version, key, score_id, setlist_id, pdf_md5, data,
        created_ms, updated_ms, deleted_ms)
    --sqlite: SELECT :user, value ->> 'id', value ->> 'kind', value ->> 'version', value ->> 'key',
    --sqlite:     value ->> 'score_id', value ->> 'setlist_id', value ->> 'pdf_md5', value ->> 'data',
    --sqlite:     value ->> 'created_ms', value ->> 'updated_ms', value ->> 'deleted_ms'
    --sqlite: FROM json_each(:rows) WHERE true
    --postgresql: SELECT :user, id, kind, version, key, score_id, setlist_id, pdf_md5, data, created_ms, updated_ms,
    --postgresql:     deleted_ms
    --postgresql: FROM json_to_recordset(CAST(:rows AS json)) AS row (id bigint, kind smallint, version bigint,
    --postgresql:     key text, score_id bigint, setlist_id bigint, pdf_md5 text, data text, created_ms bigint,
    --postgresql:     updated_ms bigint, deleted_ms bigint)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, key = excluded.key, score_id = excluded.score_id,
        setlist_id = excluded.setlist_id, pdf_md5 = excluded.pdf_md5, data = excluded.data,
        updated_ms = excluded.updated_ms, deleted_ms = excluded.deleted_ms
    """
)

# library_alias
ALIASES = Query(
    Alias,
    "SELECT entity_id, kind, id FROM library_alias WHERE user_id = :user AND entity_id = ANY(:names)",
)
NAME = Statement(
    """
    INSERT INTO library_alias (user_id, entity_id, kind, id)
    --sqlite: SELECT :user, value ->> 'entity_id', value ->> 'kind', value ->> 'id' FROM json_each(:aliases) WHERE true
    --postgresql: SELECT :user, entity_id, kind, id FROM json_to_recordset(CAST(:aliases AS json))
    --postgresql:     AS alias (entity_id text, kind smallint, id bigint)
    ON CONFLICT (user_id, entity_id, kind) DO UPDATE SET id = excluded.id
    """
)

# library_possession
POSSESS = Statement(
    "INSERT INTO library_possession (user_id, sha256) VALUES (:user, :sha256) ON CONFLICT DO NOTHING"
)
POSSESSED = Query(
    str, "SELECT sha256 FROM library_possession WHERE user_id = :user AND sha256 = ANY(:sha256s)"
)
FIND_FOR = Query(
    int,
    """
    SELECT CASE WHEN EXISTS
        (SELECT 1 FROM library_possession WHERE user_id = :user AND library_possession.sha256 = blob.sha256)
        THEN 1 ELSE 0 END
    FROM blob WHERE md5 = :md5
    """,
)
FILES = Query(tuple[str, str], "SELECT md5, sha256 FROM blob WHERE md5 = ANY(:md5s)")
READABLE = Query(
    Blob,
    """
    SELECT sha256, md5, size, name, refs, created_ms, orphan_since_ms FROM blob WHERE md5 = :md5 AND EXISTS
        (SELECT 1 FROM library_entity WHERE pdf_md5 = :md5 AND user_id = :user)
    """,
)

# library_next_id
TAKE_IDS = Query(int, "UPDATE library_next_id SET next = next + :count WHERE one = 1 RETURNING next")
