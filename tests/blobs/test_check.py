"""What `holdfast check` says about files, and that strays are only removed from a place of ours."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.blobs import reference
from holdfast.blobs.check import verify_blobs, verify_references
from holdfast.blobs.disk import DiskPlace
from holdfast.blobs.model import blob_name
from holdfast.blobs.owner import MARK
from holdfast.store import Statement
from tests.blobs.conftest import GRACE_SECONDS, House, OpenHouse, streamed

CONTENT = b"a scan" * 1000


async def put(house: House) -> tuple[str, Path]:
    blob = await house.files.receive(streamed(CONTENT), limit=10_000, holder="h")
    await house.db.write(reference, blob.sha256, 0)
    return blob.sha256, house.folder / blob.name


async def problems(house: House, *, deep: bool = False) -> list[str]:
    now_ms = max(house.clock.now_ms(), time.time_ns() // 1_000_000)
    grace_ms = round(GRACE_SECONDS * 1000)
    return await house.db.read(
        lambda view: list(verify_blobs(view, house.place, now_ms=now_ms, grace_ms=grace_ms, deep=deep))
    )


async def test_nothing_is_said_about_a_house_in_order(open_house: OpenHouse) -> None:
    async with open_house() as house:
        key, _ = await put(house)
        upload = await house.resumable.begin("h", limit=100, length=None)
        await house.resumable.append(upload.id, 0, streamed(b"piece"))
        assert await problems(house, deep=True) == []
        assert await house.db.read(lambda view: list(verify_references(view, {key: 1}))) == []


async def test_a_missing_a_cut_and_a_changed_file_are_found(open_house: OpenHouse) -> None:
    async with open_house() as house:
        key, path = await put(house)
        path.write_bytes(b"x" * len(CONTENT))
        assert await problems(house) == []
        assert await problems(house, deep=True) == [
            f"blob {key}: the content of {_name(house, path)} has another hash"
        ]
        path.write_bytes(b"x")
        assert await problems(house) == [f"blob {key}: its file has 1 bytes instead of {len(CONTENT)}"]
        path.unlink()
        assert await problems(house) == [
            f"blob {key}: its file {_name(house, path)} is missing (1 references)"
        ]


def _name(house: House, path: Path) -> str:
    return path.relative_to(house.folder).as_posix()


async def test_a_lost_piece_and_a_blob_that_should_have_gone_are_found(open_house: OpenHouse) -> None:
    async with open_house() as house:
        upload = await house.resumable.begin("h", limit=100, length=None)
        await house.resumable.append(upload.id, 0, streamed(b"piece"))
        (piece,) = house.names()
        (house.folder / piece).unlink()
        blob = await house.files.receive(streamed(CONTENT), limit=10_000, holder="h")
        long_ago = Statement("UPDATE blob_claim SET until_ms = 0")
        await house.db.write(lambda tx: tx.execute(long_ago))
        assert await problems(house) == [
            f"blob {blob.sha256}: nobody keeps it, and it is still here",
            f"file {piece}: a piece of an unfinished upload is missing or cut",
        ]


async def test_counts_that_differ_from_the_rooms_rows_are_found(open_house: OpenHouse) -> None:
    async with open_house() as house:
        key, _ = await put(house)
        said = await house.db.read(lambda view: list(verify_references(view, {"f" * 64: 2})))
        assert said == [
            f"blob {'f' * 64}: 2 rows refer to it, and it is not there",
            f"blob {key}: it counts 1 references, there are 0",
        ]


def stray_in(house: House) -> str:
    name = blob_name("ab" * 32, "stray")
    path = house.folder / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"nobody knows me")
    old = house.clock.now_ms() / 1000 - GRACE_SECONDS - 1
    os.utime(path, (old, old))
    return name


async def test_a_file_that_no_table_knows_is_found_and_removed_after_its_grace(open_house: OpenHouse) -> None:
    async with open_house() as house:
        _, path = await put(house)
        name = stray_in(house)
        assert await problems(house) == [f"file {name}: nothing refers to it, and its grace is over"]
        assert await house.collector.remove_strays() == 1
        assert house.names() == [_name(house, path)]
        assert await problems(house) == []


async def test_a_server_that_was_pointed_at_another_ones_files_tidies_nothing(open_house: OpenHouse) -> None:
    async with open_house() as house:
        source = house.folder / "source"
        house.folder.mkdir(exist_ok=True)
        source.write_bytes(b"somebody else")
        DiskPlace(house.folder).keep(source, MARK)
        name = stray_in(house)
        assert await house.collector.remove_strays() == 0
        assert house.names() == [name]
