"""Wires the room: personal libraries."""

from __future__ import annotations

from holdfast.blobs import BlobRoom
from holdfast.clock import Clock
from holdfast.metrics import Metrics
from holdfast.service import Service
from holdfast.settings import Settings
from holdfast.store import Database


class LibraryRoom(Service):
    def __init__(
        self, db: Database, blobs: BlobRoom, clock: Clock, settings: Settings, metrics: Metrics
    ) -> None: ...
