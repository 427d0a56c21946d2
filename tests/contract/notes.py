"""A room as small as can be, for the tests of the store: notes, and a count of them kept in a row of its own.

An action that adds a note writes three rows; `half_applied` finds any mixture that is not all or nothing.
"""

from __future__ import annotations

from holdfast.store import Query, Snapshot, Statement, Transaction
from holdfast.store.migrations import Migration

NOTES = Migration(
    "notes",
    1,
    "notes",
    """
    CREATE TABLE note (id BIGINT PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE copy (id BIGINT PRIMARY KEY, text TEXT NOT NULL);
    CREATE TABLE total (one INTEGER PRIMARY KEY, notes BIGINT NOT NULL);
    INSERT INTO total VALUES (1, 0);
    -- a link is looked at when the transaction ends
    CREATE TABLE link (
        id BIGINT PRIMARY KEY,
        note BIGINT NOT NULL REFERENCES note (id) DEFERRABLE INITIALLY DEFERRED
    );
    """,
)

ADD = Statement("INSERT INTO note (id, text) VALUES (:id, :text)")
COPY = Statement("INSERT INTO copy (id, text) VALUES (:id, :text)")
COUNT_UP = Statement("UPDATE total SET notes = notes + 1")
LINK = Statement("INSERT INTO link (id, note) VALUES (:id, :note)")
UPSERT = Statement(
    "INSERT INTO note (id, text) VALUES (:id, :text) ON CONFLICT (id) DO UPDATE SET text = excluded.text"
)
TEXT = Query(str, "SELECT text FROM note WHERE id = :id")
IDS = Query(int, "SELECT id FROM note ORDER BY id")
COPIES = Query(int, "SELECT id FROM copy ORDER BY id")
TOTAL = Query(int, "SELECT notes FROM total")
COUNT_SLOWLY = Query(
    int,
    """
    --sqlite:     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
    --sqlite:     SELECT count(*) FROM n
    --postgresql: SELECT 1 FROM pg_sleep(30)
    """,
)


class Added:
    """Event: a note was added."""

    def __init__(self, number: int) -> None:
        self.number = number


def add(tx: Transaction, number: int, text: str = "a note") -> int:
    tx.execute(ADD, id=number, text=text)
    tx.execute(COPY, id=number, text=text)
    tx.execute(COUNT_UP)
    tx.after(Added(number))
    return number


def add_row(tx: Transaction, number: int, text: str = "a note") -> int:
    """Locks no row that others want, so that many run side by side on PostgreSQL."""
    tx.execute(ADD, id=number, text=text)
    return number


def add_and_fail(tx: Transaction, number: int, error: BaseException) -> None:
    add(tx, number)
    raise error


def push(tx: Transaction, first: int, rows: int) -> int:
    """A heavy command: as many rows as a library pushes at once."""
    for number in range(first, first + rows):
        tx.execute(UPSERT, id=number, text="pushed")
    return rows


def ids(view: Snapshot) -> list[int]:
    return view.rows(IDS)


def half_applied(view: Snapshot) -> str | None:
    """What is wrong with the store, if a command was applied in part."""
    notes, copies, total = view.rows(IDS), view.rows(COPIES), view.one(TOTAL)
    if notes != copies:
        return f"{set(notes) ^ set(copies)} are in one table only"
    if total != len(notes):
        return f"{len(notes)} notes, but the total says {total}"
    return None
