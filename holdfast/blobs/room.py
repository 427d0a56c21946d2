"""Wires the room: one place and one folder of temporary files behind files, resumable uploads and the collector."""

from __future__ import annotations

from pathlib import Path

from holdfast.blobs.collector import Collector
from holdfast.blobs.disk import DiskPlace
from holdfast.blobs.files import Files
from holdfast.blobs.incoming import Incoming
from holdfast.blobs.metrics import BlobMetrics
from holdfast.blobs.objects import ObjectPlace, connect
from holdfast.blobs.place import Place
from holdfast.blobs.resumable import ResumableUploads
from holdfast.clock import Clock
from holdfast.metrics import Metrics
from holdfast.settings import Blobs
from holdfast.store import Database


def place_of(folder: Path, settings: Blobs) -> Place:
    """Where files are, by the settings: `folder` of this machine, or the object store of `blobs.url`."""
    return ObjectPlace(connect(settings)) if settings.url else DiskPlace(folder)


class BlobRoom:
    """`folder` is the room's own in the data folder; uploads are written there also for an object store."""

    def __init__(
        self,
        db: Database,
        folder: Path,
        clock: Clock,
        settings: Blobs,
        metrics: Metrics,
        place: Place | None = None,
    ) -> None:
        counted = BlobMetrics(metrics)
        incoming = Incoming(folder / "incoming")
        self.place = place or place_of(folder, settings)
        self.files = Files(db, self.place, incoming, clock, settings, counted)
        self.resumable = ResumableUploads(db, self.files, self.place, clock, settings)
        self.collector = Collector(db, self.files, self.place, incoming, clock, settings, counted)

    async def start(self) -> None:
        await self.collector.start()

    async def stop(self) -> None:
        await self.collector.stop()
        await self.files.stop()
