"""Uploads that continue where they stopped."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator

import pytest

from holdfast.blobs import ResumableUploads, find, partials, resumable
from holdfast.errors import FileGone, TooLarge, WrongDigest, WrongOffset, WrongType
from tests.blobs.conftest import GRACE_SECONDS, House, OpenHouse, joined, streamed

MIB = 1024 * 1024
SCAN = os.urandom(5000) * 100
KEY = hashlib.sha256(SCAN).hexdigest()


class Cut(Exception):
    pass


async def cut_after(content: bytes) -> AsyncIterator[bytes]:
    async for chunk in streamed(content, 1000):
        yield chunk
    raise Cut


async def begin(uploads: ResumableUploads, length: int | None = len(SCAN)) -> str:
    return (await uploads.begin("library:1", limit=MIB, length=length, note="name c2Nhbg==")).id


async def read(house: House) -> bytes:
    async with await house.files.open(KEY) as download:
        return await joined(download.stream())


async def test_a_cut_upload_continues_after_a_restart_where_it_stopped(open_house: OpenHouse) -> None:
    async with open_house() as house:
        upload = await begin(house.resumable)
        with pytest.raises(Cut):
            await house.resumable.append(upload, 0, cut_after(SCAN[:123_456]))
    async with open_house() as house:
        await house.collector.sweep()
        there = await house.resumable.status(upload)
        assert (there.received, there.length, there.note) == (123_456, len(SCAN), "name c2Nhbg==")
        await house.resumable.append(upload, 123_456, streamed(SCAN[123_456:]))
        blob = await house.resumable.finish(upload)
        assert blob.sha256 == KEY
        assert await read(house) == SCAN


async def test_a_sender_who_is_cancelled_keeps_what_arrived(open_house: OpenHouse) -> None:
    stuck = asyncio.Event()

    async def stalls() -> AsyncIterator[bytes]:
        yield SCAN[:1000]
        stuck.set()
        await asyncio.Event().wait()

    async with open_house() as house:
        upload = await begin(house.resumable)
        sending = asyncio.create_task(house.resumable.append(upload, 0, stalls()))
        await stuck.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (await house.resumable.status(upload)).received == 1000
        assert house.leftovers() == []


async def test_only_the_offset_where_it_stands_is_taken_also_from_two_at_once(open_house: OpenHouse) -> None:
    async with open_house() as house:
        upload = await begin(house.resumable)
        for wrong in (1, len(SCAN)):
            with pytest.raises(WrongOffset) as refused:
                await house.resumable.append(upload, wrong, streamed(b"x"))
            assert refused.value.received == 0
        answers = await asyncio.gather(
            *(house.resumable.append(upload, 0, streamed(SCAN)) for _ in range(4)), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in answers) == ["Partial", *3 * ["WrongOffset"]]
        await house.resumable.finish(upload)
        await house.collector.collect()
        assert len(house.names()) == 1
        assert await read(house) == SCAN


async def test_a_long_upload_is_kept_piece_by_piece(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable, "PIECE_BYTES", 50_000)
    async with open_house() as house:
        upload = await begin(house.resumable)
        with pytest.raises(Cut):
            await house.resumable.append(upload, 0, cut_after(SCAN))
        pieces = await house.db.read(partials.pieces, upload)
        assert [size for _, size in pieces] == [50_000] * 10
        await house.resumable.finish(upload)
        assert await read(house) == SCAN


async def test_more_than_its_length_or_its_limit_is_refused(open_house: OpenHouse) -> None:
    async with open_house() as house:
        with pytest.raises(TooLarge):
            await begin(house.resumable, MIB + 1)
        upload = await begin(house.resumable)
        with pytest.raises(TooLarge):
            await house.resumable.append(upload, 0, streamed(SCAN + b"x"))
        endless = await begin(house.resumable, None)
        with pytest.raises(TooLarge):
            await house.resumable.append(endless, 0, streamed(bytes(MIB + 1)))
        assert house.leftovers() == []


async def test_a_length_may_be_declared_later_but_once(open_house: OpenHouse) -> None:
    async with open_house() as house:
        upload = await begin(house.resumable, None)
        await house.resumable.append(upload, 0, streamed(SCAN[:1000]))
        with pytest.raises(WrongOffset):
            await house.resumable.declare_length(upload, 999)
        await house.resumable.declare_length(upload, len(SCAN))
        with pytest.raises(WrongOffset):
            await house.resumable.declare_length(upload, len(SCAN) + 1)
        with pytest.raises(WrongOffset):
            await house.resumable.finish(upload)  # it is not all here
        await house.resumable.append(upload, 1000, streamed(SCAN[1000:]))
        assert (await house.resumable.finish(upload)).size == len(SCAN)


async def test_finishing_again_answers_the_same_blob_and_claims_it_once_more(open_house: OpenHouse) -> None:
    async with open_house() as house:
        upload = await begin(house.resumable)
        await house.resumable.append(upload, 0, streamed(SCAN))
        first, *more = await asyncio.gather(*(house.resumable.finish(upload) for _ in range(3)))
        assert [blob.sha256 for blob in more] == [first.sha256] * 2
        assert (await house.resumable.status(upload)).sha256 == KEY
        with pytest.raises(WrongOffset):
            await house.resumable.append(upload, len(SCAN), streamed(b"x"))
        assert (await house.resumable.finish(upload)).sha256 == KEY


async def test_content_that_is_not_wanted_or_not_what_was_said_becomes_no_blob(open_house: OpenHouse) -> None:
    def only_pdf(head: bytes) -> None:
        if not head.startswith(b"%PDF-"):
            raise WrongType

    async with open_house() as house:
        upload = await begin(house.resumable)
        await house.resumable.append(upload, 0, streamed(SCAN))
        with pytest.raises(WrongType):
            await house.resumable.finish(upload, accept=only_pdf)
        with pytest.raises(WrongDigest):
            await house.resumable.finish(upload, expected="0" * 64)
        assert await house.db.read(find, KEY) is None


async def test_an_upload_that_nobody_continues_expires_with_its_pieces(open_house: OpenHouse) -> None:
    async with open_house() as house:
        kept, dropped = await begin(house.resumable), await begin(house.resumable)
        for upload in (kept, dropped):
            await house.resumable.append(upload, 0, streamed(SCAN[:1000]))
        await house.resumable.drop(dropped)
        await house.collector.collect()
        assert len(house.names()) == 1
        house.clock.advance(GRACE_SECONDS - 1)
        await house.resumable.append(kept, 1000, streamed(SCAN[1000:2000]))
        house.clock.advance(GRACE_SECONDS - 1)
        await house.collector.sweep()
        assert (await house.resumable.status(kept)).received == 2000
        house.clock.advance(2)
        await house.collector.sweep()
        assert house.names() == []
        for upload in (kept, dropped):
            with pytest.raises(FileGone):
                await house.resumable.status(upload)


async def test_after_a_restore_unfinished_uploads_begin_again(open_house: OpenHouse) -> None:
    async with open_house() as house:
        upload = await begin(house.resumable)
        await house.db.write(partials.forget_all, house.clock.now_ms())
        with pytest.raises(FileGone):
            await house.resumable.status(upload)
