"""What the ledger counts."""

from __future__ import annotations

from holdfast.ledger.model import Kind
from holdfast.metrics import Metrics

SIZES = (0.0, 1.0, 10.0, 50.0, 100.0, 200.0, 500.0, 1_000.0)


class LedgerMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._writes = metrics.counter("holdfast_ledger_writes", "Single writes that were answered", "entity")
        self._batches = metrics.histogram(
            "holdfast_ledger_batch_operations", "Operations of a batch", bounds=SIZES
        ).series()
        self._pages = metrics.histogram(
            "holdfast_ledger_pulled_entities", "Entities of a pulled page that is not empty", bounds=SIZES
        ).series()
        self._resets = metrics.counter("holdfast_ledger_resets", "Pulls that had to start over")
        self._news = metrics.counter("holdfast_ledger_news", "Notifications handed to MQTT", "type")
        self._uplink = metrics.counter("holdfast_ledger_uplink", "Messages of the uplink", "outcome")

    def wrote(self, entity: Kind) -> None:
        self._writes.add(entity)

    def batched(self, operations: int) -> None:
        self._batches.observe(operations)

    def pulled(self, books: int, bills: int, images: int, *, reset: bool) -> None:
        self._pages.observe(books + bills + images)
        if reset:
            self._resets.add()

    def told(self, kind: str) -> None:
        self._news.add(kind)

    def uplink(self, outcome: str) -> None:
        self._uplink.add(outcome)
