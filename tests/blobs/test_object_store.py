"""The whole room over a real S3 server."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator

import obstore
import pytest

from holdfast.blobs import reference, release
from holdfast.blobs.objects import ObjectPlace, connect
from holdfast.errors import CannotStart, FileGone
from holdfast.settings import Blobs
from tests.blobs.conftest import OpenHouse, joined, s3_settings, streamed
from tests.blobs.watched import watched
from tests.servers.s3 import S3

MIB = 1024 * 1024
SCAN = os.urandom(1000) * 20_000  # 20 MB: three parts
KEY = hashlib.sha256(SCAN).hexdigest()


async def test_content_lives_and_goes_in_a_bucket_under_its_prefix(s3: S3, open_house: OpenHouse) -> None:
    settings = s3_settings(s3)
    async with open_house(ObjectPlace(connect(settings))) as house:
        await asyncio.gather(
            *(house.files.receive(streamed(SCAN), limit=len(SCAN), holder=f"u{n}") for n in range(3))
        )
        await house.collector.sweep()
        bucket = settings.url.removesuffix("/some/prefix")
        whole = connect(
            Blobs(bucket, settings.endpoint, settings.region, settings.access_key, settings.secret_key)
        )
        there = [entry["path"] for page in obstore.list(whole) for entry in page]
        assert [path.partition(KEY)[0] for path in there] == [f"some/prefix/files/{KEY[:2]}/"]
        for holder in ("u0", "u1", "u2"):
            await house.db.write(lambda tx, who=holder: reference(tx, KEY, 0, holder=who))
        async with await house.files.open(KEY) as download:
            assert download.path is None
            assert await joined(download.stream(5, 9_000_005)) == SCAN[5:9_000_005]
        for _ in range(3):
            await house.db.write(release, KEY, house.clock.now_ms())
        assert await house.collector.collect() == 1
        assert list(house.place.listing()) == []
        with pytest.raises(FileGone):
            await house.files.open(KEY)
        assert house.leftovers() == []


async def test_resumed_uploads_and_the_owner_mark_work_in_a_bucket(s3: S3, open_house: OpenHouse) -> None:
    async with open_house(ObjectPlace(connect(s3_settings(s3, "")))) as house:
        upload = await house.resumable.begin("u", limit=len(SCAN), length=len(SCAN))
        await house.resumable.append(upload.id, 0, streamed(SCAN[:7_000_000]))
        await house.resumable.append(upload.id, 7_000_000, streamed(SCAN[7_000_000:]))
        assert (await house.resumable.finish(upload.id)).sha256 == KEY
        await house.collector.collect()
        assert len(house.names()) == 1
        for _ in range(2):
            assert await house.collector.remove_strays() == 0
        assert len(house.names()) == 1


def test_an_address_that_means_nothing_is_one_clear_sentence() -> None:
    with pytest.raises(CannotStart, match=r"blobs\.url"):
        connect(Blobs(url="nothing://here"))


async def test_100_mb_pass_through_a_bucket_with_flat_memory(s3: S3, open_house: OpenHouse) -> None:
    chunk = os.urandom(MIB)

    async def many() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield chunk

    async with open_house(ObjectPlace(connect(s3_settings(s3)))) as house:
        await house.files.receive(streamed(SCAN), limit=len(SCAN), holder="warm up")
        async with watched() as seen:
            blob = await house.files.receive(many(), limit=100 * MIB, holder="h")
            async with await house.files.open(blob.sha256) as download:
                size = 0
                async for piece in download.stream():
                    size += len(piece)
        assert size == 100 * MIB
        assert seen.grown_mib < 50
