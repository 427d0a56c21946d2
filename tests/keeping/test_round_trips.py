"""What was backed up is what is restored, from either database into either."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import feed
from holdfast.errors import CannotStart
from holdfast.keeping import check as checks
from holdfast.keeping.backup import backup
from holdfast.keeping.progress import Unwatched
from holdfast.keeping.restore import restore
from holdfast.store.migrations import Migration
from tests.keeping.conftest import NewGround
from tests.keeping.ground import CLOCK, KNOWN, ODD_LATER, Ground, ground_at

QUIET = Unwatched()
BACKENDS = ["sqlite", "postgresql"]
NEW_AFTER_A_RESTORE = {"meta", "blob_gate", "users", "refresh_chain"}  # of the last two, the sv


def problems(ground: Ground, *, deep: bool = False) -> list[str]:
    return [str(found) for found in checks.check(ground.kept, KNOWN, CLOCK, QUIET, checks.Seen(), deep=deep)]


def backups_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.tar*"))


def moved_aside(ground: Ground) -> Path:
    (aside,) = ground.kept.folder.path.glob("replaced-*")
    return aside


@pytest.mark.parametrize("there", BACKENDS)
@pytest.mark.parametrize("here", BACKENDS)
async def test_a_backup_of_one_database_restores_into_the_other(
    there: str, here: str, new_ground: NewGround, tmp_path: Path
) -> None:
    old, new = new_ground(there), new_ground(here)
    async with old.open() as world:
        await world.furnish()
        kept = [await world.keep(content) for content in (b"a", b"b" * 1_000_000)]
    manifest = backup(old.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    restored = restore(new.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    assert restored == manifest
    before, after = old.contents(), new.contents()
    assert before.keys() == after.keys()
    for table in before.keys() - NEW_AFTER_A_RESTORE - {"blob"}:
        assert after[table] == before[table], table
    assert [row[:4] for row in after["users"]] == [row[:4] for row in before["users"]]
    assert [row[:2] for row in after["refresh_chain"]] == [row[:2] for row in before["refresh_chain"]]
    async with new.open() as world:
        assert await world.content(kept[1].sha256) == b"b" * 1_000_000
        assert (await world.accounts.log_in("ann", "correct horse", "127.0.0.1")).user_id
    assert problems(new, deep=True) == []


async def test_a_restored_store_has_a_new_epoch(
    ground: Ground, new_ground: NewGround, tmp_path: Path
) -> None:
    async with ground.open() as world:
        before = await world.db.write(feed.ensure_epoch)
    manifest = backup(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    assert manifest.epoch == before
    new = new_ground(ground.kept.store.backend)
    restore(new.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    async with new.open() as world:
        assert await world.db.write(feed.ensure_epoch) != before


async def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    ground: Ground, new_ground: NewGround, tmp_path: Path
) -> None:
    async with ground.open() as world:
        await world.furnish()
    backup(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    new = new_ground(ground.kept.store.backend)
    restore(new.kept, [*KNOWN, ODD_LATER], tmp_path / "b.tar", CLOCK, QUIET)
    assert {row[-1] for row in new.contents()["odd_parent"]} == {"none"}


@pytest.mark.parametrize(
    ("known", "says"), [(KNOWN, "its odd is at 2, this one knows 1"), (KNOWN[:-1], "does not: odd")]
)
async def test_a_backup_of_a_newer_schema_is_refused(
    known: list[Migration], says: str, ground: Ground, new_ground: NewGround, tmp_path: Path
) -> None:
    newer = [*KNOWN, ODD_LATER]
    async with ground.open(newer):
        pass
    backup(ground.kept, newer, tmp_path / "b.tar", CLOCK, QUIET)
    new = new_ground(ground.kept.store.backend)
    with pytest.raises(CannotStart, match=says):
        restore(new.kept, known, tmp_path / "b.tar", CLOCK, QUIET)
    assert not new.kept.folder.path.exists()


async def test_a_backup_is_refused_while_migrations_are_missing(ground: Ground, tmp_path: Path) -> None:
    async with ground.open():
        pass
    with pytest.raises(CannotStart, match="lacks the migration odd/0002_later"):
        backup(ground.kept, [*KNOWN, ODD_LATER], tmp_path / "b.tar", CLOCK, QUIET)
    assert backups_in(tmp_path) == []


async def test_a_store_that_is_not_empty_is_not_restored_into(ground: Ground, tmp_path: Path) -> None:
    async with ground.open() as world:
        await world.furnish()
    backup(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    before = ground.contents()
    with pytest.raises(CannotStart, match="not empty"):
        restore(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    assert ground.contents() == before


async def test_nothing_is_restored_under_a_running_server(ground: Ground, tmp_path: Path) -> None:
    async with ground.open() as world:
        ground.kept.folder.lock()
        backup(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
        with pytest.raises(CannotStart, match=r"in use by another|server is running"):
            restore(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET, replace=True)
        await world.furnish()
        ground.kept.folder.unlock()


async def test_force_moves_the_old_store_aside_whole(new_ground: NewGround, tmp_path: Path) -> None:
    ground = new_ground("sqlite")
    async with ground.open() as world:
        await world.furnish()
    backup(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    async with ground.open() as world:
        later = await world.accounts.add_user("later", "correct horse")
        await world.keep(b"later")
    before = ground.contents()
    restore(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET, replace=True)
    assert later.id not in {row[0] for row in ground.contents()["users"]}
    old = ground_at(moved_aside(ground))
    assert old.contents() == before
    assert problems(old, deep=True) == []
