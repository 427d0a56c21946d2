"""Wires the room: shared account books."""

from __future__ import annotations

from holdfast.blobs import BlobRoom
from holdfast.clock import Clock
from holdfast.messenger import Messenger
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database


class LedgerRoom(Service):
    def __init__(
        self,
        db: Database,
        blobs: BlobRoom,
        clock: Clock,
        settings: Settings,
        metrics: Metrics,
        messenger: Messenger,
    ) -> None: ...
