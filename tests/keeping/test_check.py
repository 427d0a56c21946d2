"""`check` finds what was broken on purpose, one kind after the other, and nothing where nothing is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from holdfast.errors import CannotStart
from holdfast.keeping import check as checks
from holdfast.keeping.progress import Unwatched
from tests.keeping.conftest import NewGround
from tests.keeping.ground import CLOCK, KNOWN, ODD_LATER, ODD_LATEST, Ground

QUIET = Unwatched()


def problems(ground: Ground, *, deep: bool = False) -> list[str]:
    return [str(found) for found in checks.check(ground.kept, KNOWN, CLOCK, QUIET, checks.Seen(), deep=deep)]


async def furnished(ground: Ground) -> None:
    async with ground.open() as world:
        await world.furnish()


async def test_a_sound_store_has_no_problems(ground: Ground) -> None:
    await furnished(ground)
    seen = checks.Seen()
    assert list(checks.check(ground.kept, KNOWN, CLOCK, QUIET, seen, deep=True)) == []
    assert seen.files == 3
    assert seen.rows > 10


async def test_a_store_is_checked_beside_the_server_that_writes_it(ground: Ground) -> None:
    async with ground.open() as world:
        ground.kept.folder.lock()
        try:
            await world.furnish()
            assert problems(ground) == []
        finally:
            ground.kept.folder.unlock()


ONE_USER = "(SELECT min(id) FROM users)"
BROKEN = [
    (
        "accounts",
        "its sv_revision 99 was never given out",
        f"UPDATE users SET sv = 2, sv_revision = 99 WHERE id = {ONE_USER}",
    ),
    ("accounts", "cannot be found by its name", f"UPDATE users SET name_key = 'x' WHERE id = {ONE_USER}"),
    ("accounts", "not an argon2id hash", f"UPDATE users SET password_hash = 'secret' WHERE id = {ONE_USER}"),
    ("accounts", "sv_counter has 0 rows", "DELETE FROM sv_counter"),
    ("accounts", "none of its tokens is the newest", "UPDATE refresh_token SET exchanged_ms = 1"),
    (
        "blobs",
        "7 references",
        "UPDATE blob SET refs = 7, orphan_since_ms = NULL WHERE size = 6",
    ),
    ("blobs", "bytes instead of 7", "UPDATE blob SET size = 7 WHERE size = 6"),
    ("blobs", "its file is named", "UPDATE blob SET name = 'files/xx/other' WHERE size = 6"),
    (
        "blobs",
        "is missing or cut",
        "INSERT INTO blob_piece (partial, start, size, name) VALUES ('p', 0, 5, 'pieces/xx/y')",
    ),
    (
        "feed",
        "which is not there",
        "INSERT INTO feed_log (space, seq, pos, cseq, kind, entity, fresh) VALUES (1, 1, 1, 1, 1, 'x', TRUE)",
    ),
    (
        "feed",
        "counts 3 living, there are 0",
        "INSERT INTO feed_space (space, seq, cseq, head, live, digest, swept) VALUES (1, 3, 3, 3, 3, 0, 3)",
    ),
    (
        "feed",
        "the owner has no feed",
        "INSERT INTO feed_link (owner, space, inside, base, cut) VALUES (1, 1, TRUE, 1, 0)",
    ),
]


@pytest.mark.parametrize(("room", "says", "statement"), BROKEN, ids=[says for _, says, _ in BROKEN])
async def test_a_broken_invariant_is_named(room: str, says: str, statement: str, ground: Ground) -> None:
    await furnished(ground)
    if "blob_piece" in statement:
        ground.execute(
            "INSERT INTO blob_partial (id, holder, most, note, expires_ms) VALUES ('p', 'h', 9, '', 9999999999999)"
        )
    ground.execute(statement)
    found = problems(ground)
    assert any(problem.startswith(f"{room}: ") and says in problem for problem in found), found


def lose(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    os.truncate(file, 3)


def change(file: Path) -> None:
    file.write_bytes(b"a sang")


@pytest.mark.parametrize(
    ("harm", "says", "deep"),
    [
        (lose, "is missing", False),
        (cut, "has 3 bytes instead of 6", False),
        (change, "has another hash", True),
    ],
)
async def test_a_harmed_file_is_named(
    harm: Callable[[Path], None], says: str, deep: bool, ground: Ground
) -> None:
    async with ground.open() as world:
        blob = await world.keep(b"a song")
    harm(ground.kept.folder.blobs / blob.name)
    (found,) = problems(ground, deep=deep)
    assert found.startswith("blobs: ")
    assert blob.sha256 in found
    assert says in found
    if deep:
        assert problems(ground) == [], "only --deep reads the content"


async def test_what_awaits_collection_is_a_problem_only_while_a_server_could_collect_it(
    ground: Ground,
) -> None:
    """A store that lay still for a week is sound: the next start sweeps it."""
    async with ground.open() as world:
        await world.keep(b"a song")
    ground.execute("UPDATE blob SET orphan_since_ms = 1", "DELETE FROM blob_claim")
    assert problems(ground) == []
    async with ground.open():
        ground.kept.folder.lock()
        try:
            (found,) = problems(ground)
        finally:
            ground.kept.folder.unlock()
    assert "nobody keeps it" in found


async def test_a_damaged_page_is_found_by_a_deep_check(new_ground: NewGround) -> None:
    ground = new_ground("sqlite")
    async with ground.open() as world:
        await world.furnish()
    path = ground.kept.folder.database
    with apsw.Connection(str(path)) as connection:
        root = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'users_by_sv_revision'"
        ).fetchone()
        size = connection.pragma("page_size")
    assert root is not None
    with path.open("r+b") as file:
        file.seek((int(root[0]) - 1) * int(size) + 8)  # type: ignore[call-overload]
        file.write(bytes(64))
    assert any(found.startswith("store: ") for found in problems(ground, deep=True))


async def test_a_row_that_refers_to_nothing_is_found_in_sqlite(new_ground: NewGround) -> None:
    ground = new_ground("sqlite")
    await furnished(ground)
    with apsw.Connection(str(ground.kept.folder.database)) as connection:
        connection.execute('INSERT INTO odd_child (parent, "order") VALUES (77, 1)')
    assert any("refers to a row of odd_parent" in found for found in problems(ground))


async def test_a_store_of_another_version_is_not_judged(ground: Ground) -> None:
    with pytest.raises(CannotStart, match=r"no holdfast in this database yet|there is no store"):
        problems(ground)
    async with ground.open([*KNOWN, ODD_LATER]):
        pass
    with pytest.raises(CannotStart, match="from a newer holdfast"):
        problems(ground)
    with pytest.raises(CannotStart, match="run `holdfast migrate` first"):
        list(
            checks.check(
                ground.kept, [*KNOWN, ODD_LATER, ODD_LATEST], CLOCK, QUIET, checks.Seen(), deep=False
            )
        )
