"""Wires the room: personal libraries."""

from __future__ import annotations

from collections.abc import Sequence

from litestar import Router

from holdfast.blobs import BlobRoom
from holdfast.chores import Chore
from holdfast.clock import Clock
from holdfast.library import files_http, http, tus
from holdfast.library.library import Library
from holdfast.library.metrics import LibraryMetrics
from holdfast.library.pdfs import Pdfs
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database

SYNCS_EVERY_SECONDS = 60.0


class LibraryRoom(Service):
    def __init__(
        self, db: Database, blobs: BlobRoom, clock: Clock, settings: Settings, metrics: Metrics
    ) -> None:
        counted = LibraryMetrics(metrics)
        self.library = Library(db, clock, settings.files, counted)
        self.pdfs = Pdfs(db, blobs, clock, settings, counted)
        self._limits = settings.limits

    def routers(self) -> Sequence[Router]:
        return [http.router(self.library, self._limits), files_http.router(self.pdfs), tus.router(self.pdfs)]

    def chores(self) -> Sequence[Chore]:
        return [Chore("library pulls", SYNCS_EVERY_SECONDS, self.library.write_syncs)]

    async def start(self) -> None:
        await self.library.start()
        await self.pdfs.start()

    async def stop(self) -> None:
        await self.library.stop()
