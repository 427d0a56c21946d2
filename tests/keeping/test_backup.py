"""A backup is of one moment, whatever goes on meanwhile, and is there whole or not at all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from holdfast.errors import CannotStart
from holdfast.keeping.backup import backup
from holdfast.keeping.progress import Unwatched
from holdfast.keeping.reading import verified
from holdfast.keeping.restore import restore
from holdfast.store import Statement, Transaction
from tests.faults.process import ROOT
from tests.keeping.conftest import NewGround
from tests.keeping.ground import CLOCK, KNOWN, Ground, World

QUIET = Unwatched()
ADD_PARENT = Statement("INSERT INTO odd_parent (id, above) VALUES (:id, NULL)")
ADD_CHILD = Statement('INSERT INTO odd_child (parent, "order") VALUES (:id, 1)')


def add_pair(tx: Transaction, number: int) -> None:
    """Two rows that are nothing without each other, in tables that a backup reads one after the other."""
    tx.execute(ADD_PARENT, id=number)
    tx.execute(ADD_CHILD, id=number)


async def test_rows_and_files_are_of_one_moment_under_load(
    ground: Ground, new_ground: NewGround, tmp_path: Path
) -> None:
    async with ground.open() as world:
        stop = asyncio.Event()

        async def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                await world.db.write(add_pair, number)

        async def upload_and_let_go() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                blob = await world.keep(b"file %d" % number)
                await world.refer(blob)
                await world.release(blob)
                await world.room.collector.sweep()

        load = [asyncio.create_task(write()), asyncio.create_task(upload_and_let_go())]
        await asyncio.sleep(0.1)
        backups = [tmp_path / f"{number}.tar" for number in range(5)]
        for path in backups:
            manifest = await asyncio.to_thread(backup, ground.kept, KNOWN, path, CLOCK, QUIET)
            assert manifest.damaged == ()
        stop.set()
        await asyncio.gather(*load)
    counted = []
    for path in backups:
        new = new_ground(ground.kept.store.backend)
        restore(new.kept, KNOWN, path, CLOCK, QUIET)
        found = new.contents()
        numbers = sorted(row[0] for row in found["odd_parent"])  # type: ignore[type-var]
        assert numbers == sorted(row[0] for row in found["odd_child"])  # type: ignore[type-var]
        assert numbers == list(range(1, len(numbers) + 1)), "a later pair without an earlier one"
        counted.append(len(numbers))
    assert counted[0] < counted[-1], "nothing was written meanwhile: this proves nothing"


async def test_a_file_that_goes_while_the_backup_runs_is_in_it(
    ground: Ground, new_ground: NewGround, tmp_path: Path
) -> None:
    """The last reference goes, and the collector comes, after the rows were read and before the files are."""
    async with ground.open() as world:
        blob = await world.keep(b"soon gone")
        await world.refer(blob)
        loop = asyncio.get_running_loop()

        class LetGo(Unwatched):
            def begin(self, what: str, total: int | None = None) -> None:
                if what == "files":
                    asyncio.run_coroutine_threadsafe(let_go(world), loop).result()

        async def let_go(world: World) -> None:
            await world.release(blob)
            await world.room.collector.sweep()

        await asyncio.to_thread(backup, ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, LetGo())
    new = new_ground(ground.kept.store.backend)
    restore(new.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    async with new.open() as world:
        assert await world.content(blob.sha256) == b"soon gone"


async def test_a_missing_and_a_damaged_file_are_named_and_the_rest_is_kept(
    new_ground: NewGround, tmp_path: Path
) -> None:
    ground, new = new_ground("sqlite"), new_ground("sqlite")
    async with ground.open() as world:
        gone, cut, other, whole = [
            await world.keep(content) for content in (b"gone", b"cut", b"good", b"whole")
        ]
    file_of(ground, gone.name).unlink()
    file_of(ground, cut.name).write_bytes(b"c")
    file_of(ground, other.name).write_bytes(b"evil")
    manifest = backup(ground.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    assert set(manifest.damaged) == {gone.sha256, cut.sha256, other.sha256}
    restore(new.kept, KNOWN, tmp_path / "b.tar", CLOCK, QUIET)
    async with new.open() as world:
        assert await world.content(whole.sha256) == b"whole"


def file_of(ground: Ground, name: str) -> Path:
    return ground.kept.folder.blobs / name


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


async def test_an_existing_file_is_not_overwritten_unless_asked(ground: Ground, tmp_path: Path) -> None:
    async with ground.open() as world:
        await world.furnish()
    target = tmp_path / "mine.tar"
    target.write_text("mine")
    with pytest.raises(CannotStart, match="exists"):
        backup(ground.kept, KNOWN, target, CLOCK, QUIET)
    assert target.read_text() == "mine"
    backup(ground.kept, KNOWN, target, CLOCK, QUIET, overwrite=True)
    assert verified(target, lambda _steps: None).rows > 0
    assert target.stat().st_mode & 0o777 == 0o600


async def test_two_backups_into_one_file_do_not_mix(ground: Ground, tmp_path: Path) -> None:
    async with ground.open() as world:
        await world.furnish()
    target = tmp_path / "b.tar"

    class Another(Unwatched):
        def begin(self, what: str, total: int | None = None) -> None:
            if what == "rows":
                with pytest.raises(CannotStart, match="another backup is writing"):
                    backup(ground.kept, KNOWN, target, CLOCK, QUIET)

    backup(ground.kept, KNOWN, target, CLOCK, Another())
    assert verified(target, lambda _steps: None).rows > 0


async def furnish_as_the_command_knows_it(ground: Ground) -> None:
    async with ground.open(KNOWN[:-1]) as world:
        for number in range(12):
            await world.keep(number.to_bytes(4) * 500_000)


def test_a_killed_backup_leaves_a_part_and_the_next_one_is_whole(ground: Ground, tmp_path: Path) -> None:
    asyncio.run(furnish_as_the_command_knows_it(ground))
    folder = tmp_path / "backups"
    folder.mkdir()
    command = [
        *(sys.executable, "-m", "holdfast", "backup", str(folder / "b.tar")),
        *("--data", ground.settings.data, "--set", f"store.url={ground.settings.store.url}"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    full = sizes(folder)["b.tar"]
    (folder / "b.tar").unlink()
    random, parts = Random(7), 0
    for _ in range(6):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        enough = random.uniform(0, 1) * full  # at its full size it is being read back
        while process.poll() is None and sizes(folder).get("b.tar.part", 0) < enough:
            time.sleep(0.001)
        process.kill()
        process.wait()
        assert sizes(folder).keys() <= {"b.tar", "b.tar.part"}
        parts += "b.tar.part" in sizes(folder)
        if (folder / "b.tar").exists():  # it was quicker this time: then it is whole
            verified(folder / "b.tar", lambda _steps: None)
            (folder / "b.tar").unlink()
    assert parts, "no kill hit a backup at work"
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert sizes(folder).keys() == {"b.tar"}
    assert verified(folder / "b.tar", lambda _steps: None).blobs == 12
