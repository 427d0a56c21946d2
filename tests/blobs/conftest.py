"""The places files may be in, and the room over each database."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from holdfast.blobs import BlobRoom
from holdfast.blobs.disk import DiskPlace
from holdfast.blobs.objects import ObjectPlace, connect
from holdfast.blobs.place import Place
from holdfast.clock import ManualClock
from holdfast.metrics import Metrics
from holdfast.settings import Blobs
from holdfast.store import Database
from holdfast.store.migrations import of_rooms
from tests.conftest import OpenStore, missing
from tests.servers.s3 import S3

SETTINGS = Blobs()
GRACE_SECONDS = SETTINGS.grace_hours * 3600
_buckets = count(1)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    if importlib.util.find_spec("moto") is None:
        missing("moto (an S3 server)")
    server = S3()
    server.start()
    yield server
    server.stop()


def s3_settings(server: S3, prefix: str = "/some/prefix") -> Blobs:
    bucket = f"bucket-{next(_buckets)}"
    server.make_bucket(bucket)
    return Blobs(
        url=f"s3://{bucket}{prefix}",
        endpoint=server.endpoint,
        region="eu-central-1",
        access_key="somebody",
        secret_key="something",
    )


@pytest.fixture(params=["disk", "memory", "local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The contract of a place: a test that takes this runs on all of them."""
    match request.param:
        case "disk":
            return DiskPlace(tmp_path / "place")
        case "memory":
            return ObjectPlace(connect(Blobs(url="memory:///")))
        case "local":
            (tmp_path / "objects").mkdir()
            return ObjectPlace(connect(Blobs(url=f"file://{tmp_path}/objects")))
        case _:
            return ObjectPlace(connect(s3_settings(request.getfixturevalue("s3"))))


class House:
    """A room on a database, with a clock that tests move."""

    def __init__(self, db: Database, folder: Path, place: Place | None, clock: ManualClock) -> None:
        self.db = db
        self.clock = clock
        self.metrics = Metrics()
        self.folder = folder
        self.room = BlobRoom(db, folder, clock, SETTINGS, self.metrics, place)
        self.place = self.room.place
        self.files = self.room.files
        self.collector = self.room.collector
        self.resumable = self.room.resumable

    def names(self) -> list[str]:
        return sorted(kept.name for kept in self.place.listing())

    def leftovers(self) -> list[str]:
        folder = self.folder / "incoming"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


OpenHouse = Callable[..., AbstractAsyncContextManager[House]]


@pytest.fixture
def open_house(open_store: OpenStore, tmp_path: Path) -> OpenHouse:
    """The room without its background task: tests sweep when they want to."""
    clock = ManualClock()

    @asynccontextmanager
    async def opened(place: Place | None = None) -> AsyncIterator[House]:
        async with open_store(of_rooms("store", "blobs")) as db:
            house = House(db, tmp_path / "blobs", place, clock)
            try:
                yield house
            finally:
                await house.files.stop()

    return opened


async def streamed(content: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


async def joined(chunks: AsyncIterable[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])
