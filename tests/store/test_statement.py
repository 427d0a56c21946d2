"""SQL written once: what each database gets to read."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.store import Query, Statement
from holdfast.store.statement import lines_for

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,10}", fullmatch=True)
# text in which nothing means anything to us: no colon, no percent sign, no line for one database, no lock
PLAIN = st.text(alphabet="abcxyz ,.()*=<>'\"\n", max_size=40)


@given(st.lists(st.tuples(PLAIN, NAMES)))
def test_parameters_keep_their_names_and_places(parts: list[tuple[str, str]]) -> None:
    statement = Statement("SELECT 1 " + "".join(f"{text} :{name} " for text, name in parts))
    assert re.findall(r"%\((\w+)\)s", statement.postgresql) == [name for _, name in parts]
    assert re.findall(r":(\w+)", statement.sqlite) == [name for _, name in parts]
    assert ":" not in statement.postgresql


@given(PLAIN)
def test_text_without_meaning_passes_unchanged(text: str) -> None:
    bare = lines_for("sqlite", "SELECT " + text)
    statement = Statement("SELECT " + text)
    assert statement.sqlite == statement.postgresql == bare


@given(st.lists(st.tuples(st.sampled_from(["", "sqlite", "postgresql"]), st.integers(0, 99))))
def test_lines_for_one_database_are_read_by_that_one_alone(lines: list[tuple[str, int]]) -> None:
    text = "\n".join(f"  --{which}: n{n}" if which else f"n{n}" for which, n in lines)
    for backend in ("sqlite", "postgresql"):
        expected = [f"n{n}" for which, n in lines if which in ("", backend)]
        assert lines_for(backend, text).split() == expected


@pytest.mark.parametrize(
    "lock",
    [
        "FOR UPDATE",
        "for update",
        "FOR NO KEY UPDATE",
        "FOR SHARE",
        "FOR KEY SHARE",
        "FOR UPDATE OF book",
        "FOR UPDATE OF book, member",
        "FOR UPDATE SKIP LOCKED",
        "FOR UPDATE OF book SKIP LOCKED",
        "FOR NO KEY UPDATE NOWAIT",
        "FOR\n  UPDATE",
    ],
)
def test_row_locks_vanish_on_sqlite_and_stay_on_postgresql(lock: str) -> None:
    statement = Statement(f"SELECT id FROM book WHERE id = :id {lock} LIMIT 1")
    assert statement.sqlite.split() == [
        "SELECT",
        "id",
        "FROM",
        "book",
        "WHERE",
        "id",
        "=",
        ":id",
        "LIMIT",
        "1",
    ]
    assert lock in statement.postgresql


@given(NAMES)
def test_a_list_is_read_as_json_on_sqlite(name: str) -> None:
    statement = Statement(f"DELETE FROM note WHERE id = ANY(:{name})")
    assert statement.sqlite == f"DELETE FROM note WHERE id IN (SELECT value FROM json_each(:{name}))"
    assert statement.postgresql == f"DELETE FROM note WHERE id = ANY(%({name})s)"
    assert statement.lists == {name}


def test_a_cast_is_no_parameter_and_a_percent_sign_is_itself() -> None:
    statement = Statement("SELECT :n::bigint, '100%' LIKE 'a%', ts::text")
    assert statement.postgresql == "SELECT %(n)s::bigint, '100%%' LIKE 'a%%', ts::text"


@pytest.mark.parametrize(
    "text", ["COMMIT", " begin immediate", "ROLLBACK TO x", "SAVEPOINT x", "RELEASE x", "END"]
)
def test_no_statement_ends_or_begins_a_transaction(text: str) -> None:
    with pytest.raises(ValueError, match="transactions are the store's"):
        Statement(text)


class Flagged(msgspec.Struct, frozen=True):
    number: int
    done: bool
    name: str


def test_a_row_becomes_what_the_query_says() -> None:
    one = Query(int, "SELECT 1").make
    flag = Query(bool, "SELECT 1").make
    whole = Query(Flagged, "SELECT 1").make
    assert one is not None
    assert flag is not None
    assert whole is not None
    assert one((5, 6)) == 5
    assert flag((0,)) is False
    assert whole((1, 1, "x")) == Flagged(1, True, "x")
    assert isinstance(whole((1, 0, "x")).done, bool)
    assert Query(tuple[int, str], "SELECT 1").make is None


def test_a_tuple_with_a_bool_is_refused_because_sqlite_has_none() -> None:
    with pytest.raises(TypeError, match="bool"):
        Query(tuple[int, bool], "SELECT 1")
