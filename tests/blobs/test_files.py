"""Content comes in, is claimed, referred to, read, released and goes; on both databases."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.blobs import adjust, claim, files, find, find_by_md5, reference, release, unclaim
from holdfast.blobs.disk import DiskPlace
from holdfast.blobs.incoming import Incoming
from holdfast.blobs.spool import PIECE_BYTES
from holdfast.errors import DigestTaken, FileGone, FileMissing, StoreUnavailable, TooLarge, WrongDigest
from tests.blobs.conftest import GRACE_SECONDS, House, OpenHouse, joined, streamed
from tests.blobs.watched import watched

MIB = 1024 * 1024
SCAN = os.urandom(3000) * 700  # 2.1 MB: several pieces
KEY = hashlib.sha256(SCAN).hexdigest()

# two messages with one MD5 (Wang, Feng, Lai, Yu 2004)
_LEFT = (
    "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f8955ad340609f4b30283e488832571415a"
    "085125e8f7cdc99fd91dbdf280373c5bd8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0"
    "e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70"
)
_RIGHT = (
    "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f8955ad340609f4b30283e4888325f1415a"
    "085125e8f7cdc99fd91dbd7280373c5bd8823e3156348f5bae6dacd436c919c6dd53e23487da03fd02396306d248cda0"
    "e99f33420f577ee8ce54b67080280d1ec69821bcb6a8839396f965ab6ff72a70"
)
TWINS = bytes.fromhex(_LEFT), bytes.fromhex(_RIGHT)


async def put(house: House, content: bytes = SCAN, holder: str = "library:1") -> str:
    return (await house.files.receive(streamed(content), limit=300 * MIB, holder=holder)).sha256


async def read(house: House, key: str = KEY) -> bytes:
    async with await house.files.open(key) as download:
        return await joined(download.stream())


async def test_an_upload_is_known_by_both_hashes_and_read_back(open_house: OpenHouse) -> None:
    async with open_house() as house:
        blob = await house.files.receive(streamed(SCAN), limit=len(SCAN), holder="library:1")
        assert (blob.sha256, blob.md5, blob.size) == (KEY, hashlib.md5(SCAN).hexdigest(), len(SCAN))
        assert await house.db.read(find_by_md5, blob.md5) == blob
        async with await house.files.open(KEY) as download:
            assert (download.size, download.etag) == (len(SCAN), f'"{KEY}"')
            assert await joined(download.stream()) == SCAN
            assert (
                await joined(download.stream(PIECE_BYTES - 3, PIECE_BYTES + 3)) == SCAN[PIECE_BYTES - 3 :][:6]
            )
            assert await joined(download.stream(10**6, 10**9)) == SCAN[10**6 :]
        assert house.leftovers() == []


async def test_content_survives_a_restart(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await house.db.write(reference, await put(house), 0)
    async with open_house() as house:
        await house.collector.start()
        await house.collector.stop()
        assert await read(house) == SCAN


async def test_the_same_content_is_one_file_however_often_it_comes(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await asyncio.gather(*(put(house, holder=f"library:{n}") for n in range(8)))
        await house.collector.collect()
        assert len(house.names()) == 1
        assert house.leftovers() == []
        assert await read(house) == SCAN


async def test_another_file_with_a_known_md5_is_refused_also_at_the_same_time(open_house: OpenHouse) -> None:
    assert hashlib.md5(TWINS[0]).digest() == hashlib.md5(TWINS[1]).digest()
    async with open_house() as house:
        kept = await put(house, TWINS[0])
        with pytest.raises(DigestTaken):
            await put(house, TWINS[1])
        assert await read(house, kept) == TWINS[0]
    async with open_house() as house:
        await house.collector.sweep()
        both = await asyncio.gather(*(put(house, twin) for twin in TWINS * 3), return_exceptions=True)
        assert {type(one) for one in both} == {str, DigestTaken}
        await house.collector.sweep()
        assert len(house.names()) == 1


async def test_an_oversized_or_cut_or_unwanted_upload_leaves_nothing(open_house: OpenHouse) -> None:
    async def cut() -> AsyncIterator[bytes]:
        yield SCAN[:MIB]
        raise ConnectionResetError

    async with open_house() as house:
        with pytest.raises(TooLarge):
            await house.files.receive(streamed(SCAN), limit=len(SCAN) - 1, holder="h")
        with pytest.raises(ConnectionResetError):
            await house.files.receive(cut(), limit=len(SCAN), holder="h")
        async with house.files.upload(limit=len(SCAN)) as upload:
            await upload.write(SCAN)
            with pytest.raises(WrongDigest):
                await upload.finish("h", expected="0" * 64)
        assert house.leftovers() == []
        assert house.names() == []


async def test_the_limit_is_enforced_while_it_streams(open_house: OpenHouse) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    async with open_house() as house:
        with pytest.raises(TooLarge):
            await house.files.receive(endless(), limit=10_000, holder="h")
        assert taken == 11


async def test_a_sender_who_is_cancelled_leaves_nothing(open_house: OpenHouse) -> None:
    stuck = asyncio.Event()

    async def stalls() -> AsyncIterator[bytes]:
        yield SCAN
        stuck.set()
        await asyncio.Event().wait()

    async with open_house() as house:
        sending = asyncio.create_task(house.files.receive(stalls(), limit=10 * MIB, holder="h"))
        await stuck.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert house.leftovers() == []


class SlowPlace(DiskPlace):
    """Takes a file only when it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked, self.may_go_on = threading.Event(), threading.Event()

    def keep(self, source: Path, name: str) -> None:
        self.asked.set()
        self.may_go_on.wait(10)
        super().keep(source, name)


async def test_a_sender_who_leaves_while_the_file_is_put_in_place_does_not_stop_it(
    open_house: OpenHouse, tmp_path: Path
) -> None:
    place = SlowPlace(tmp_path / "blobs")
    async with open_house(place) as house:
        sending = asyncio.create_task(put(house))
        await asyncio.to_thread(place.asked.wait, 10)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        place.may_go_on.set()
        await house.files.stop()
        assert await house.db.read(find, KEY) is not None
        assert len(house.names()) == 1
        assert house.leftovers() == []


async def test_an_upload_nobody_refers_to_lives_as_long_as_its_claim(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await put(house)
        house.clock.advance(GRACE_SECONDS - 1)
        assert await house.collector.sweep() == 0
        await put(house, holder="library:2")  # claims it anew
        house.clock.advance(GRACE_SECONDS - 1)
        assert await house.collector.sweep() == 0
        house.clock.advance(2)
        assert await house.collector.sweep() == 1
        assert house.names() == []
        with pytest.raises(FileGone):
            await house.files.open(KEY)


async def test_the_last_release_lets_the_file_go_at_once_and_a_shared_one_stays(
    open_house: OpenHouse,
) -> None:
    async with open_house() as house:
        await put(house)
        for _ in range(2):
            await house.db.write(lambda tx: reference(tx, KEY, house.clock.now_ms(), holder="library:1"))
        await house.db.write(release, KEY, house.clock.now_ms())
        assert await house.collector.collect() == 0
        assert await read(house) == SCAN
        await house.db.write(release, KEY, house.clock.now_ms())
        assert await house.collector.collect() == 1
        assert house.names() == []


async def test_a_claim_of_somebody_else_outlives_the_last_release(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await put(house, holder="library:1")
        await put(house, holder="library:2")
        await house.db.write(lambda tx: reference(tx, KEY, 0, holder="library:1"))
        await house.db.write(release, KEY, house.clock.now_ms())
        assert await house.collector.collect() == 0
        await house.db.write(unclaim, KEY, "library:2")
        assert await house.collector.collect() == 1


async def test_what_is_not_there_cannot_be_referred_to_or_claimed(open_house: OpenHouse) -> None:
    async with open_house() as house:
        with pytest.raises(FileMissing):
            await house.db.write(reference, KEY, 0)
        with pytest.raises(FileMissing):
            await house.db.write(claim, KEY, "library:1", 10**15)


async def test_many_references_are_counted_together_or_not_at_all(open_house: OpenHouse) -> None:
    async with open_house() as house:
        one, two = await put(house, b"one"), await put(house, b"two")
        await house.db.write(adjust, {two: 2, one: 3}, 0)
        with pytest.raises(FileMissing):
            await house.db.write(adjust, {one: 1, two: -1, "f" * 64: 1}, 0)
        counted = [await house.db.read(find, key) for key in (one, two)]
        assert [blob.refs for blob in counted if blob] == [3, 2]


async def test_an_open_download_is_read_to_its_end_after_the_blob_is_gone(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await put(house)
        async with await house.files.open(KEY) as download:
            await house.db.write(unclaim, KEY, "library:1")
            assert await house.collector.collect() == 1
            assert await joined(download.stream()) == SCAN


async def collected(house: House) -> None:
    while house.names():  # noqa: ASYNC110 - what we wait for is on the disk
        await asyncio.sleep(0.01)


async def test_the_running_collector_hears_of_the_last_release(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await house.collector.start()
        await put(house)
        await house.db.write(unclaim, KEY, "library:1")
        async with asyncio.timeout(10):
            await collected(house)
        await house.collector.stop()


async def test_leftovers_of_a_crash_go_at_start_but_not_what_is_being_written(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    (folder / "leftover").write_bytes(b"half a fi")
    ours, theirs = Incoming(folder), Incoming(folder)
    file = theirs.create("in-use")
    assert ours.clean() == 1
    file.append([b"more"])
    assert [path.name for path in folder.iterdir()] == ["in-use"]
    file.discard()
    assert list(folder.iterdir()) == []


async def test_while_a_backup_holds_nothing_goes(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await put(house)
        async with house.files.hold():
            await house.db.write(unclaim, KEY, "library:1")
            assert await house.collector.collect() == 0
            assert await house.collector.sweep() == 0
            assert [blob.sha256 async for blob in house.files.every()] == [KEY]
            assert await read(house) == SCAN
        house.clock.advance(600)
        assert await house.collector.sweep() == 1


async def test_a_backup_that_lost_its_hold_is_told(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "HOLD_SECONDS", 0.03)

    async def backup(house: House) -> None:
        async with house.files.hold():
            monkeypatch.setattr(house.files, "_shut_gate", broken)
            await failed.wait()
            await asyncio.sleep(0)

    failed = asyncio.Event()

    async def broken() -> None:
        failed.set()
        raise StoreUnavailable

    async with open_house() as house:
        with pytest.raises(StoreUnavailable):
            await backup(house)


async def test_a_restored_row_gets_its_file_back_and_only_the_right_one(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await house.db.write(reference, await put(house), 0)
        house.place.remove(house.names())
        with pytest.raises(FileGone):
            await read(house)
        with pytest.raises(WrongDigest):
            await house.files.restore(KEY, streamed(b"x" * len(SCAN)))
        assert house.names() == []
        await house.files.restore(KEY, streamed(SCAN))
        assert await read(house) == SCAN


async def test_bytes_and_files_are_counted(open_house: OpenHouse) -> None:
    async with open_house() as house:
        await put(house)
        await put(house)
        await read(house)
        await house.db.write(unclaim, KEY, "library:1")
        await house.collector.collect()
        said = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(house.metrics.exposition().decode())
            for sample in family.samples
        }
        assert said["holdfast_blobs_bytes_total", "in"] == 2 * len(SCAN)
        assert said["holdfast_blobs_bytes_total", "out"] == len(SCAN)
        assert [said["holdfast_blobs_files_total", what] for what in ("stored", "known", "collected")] == [
            1,
            1,
            1,
        ]


async def test_200_mb_stream_through_with_flat_memory_and_a_free_loop(open_house: OpenHouse) -> None:
    chunk = os.urandom(64 * 1024)

    async def many() -> AsyncIterator[bytes]:
        for _ in range(200 * 16):
            yield chunk

    async with open_house() as house:
        await put(house, b"warm up")
        async with watched() as seen:
            blob = await house.files.receive(many(), limit=200 * MIB, holder="h")
            async with await house.files.open(blob.sha256) as download:
                size = 0
                async for piece in download.stream():
                    size += len(piece)
        assert (blob.size, size) == (200 * MIB, 200 * MIB)
        assert seen.grown_mib < 24
        assert seen.usually_late < 0.02
