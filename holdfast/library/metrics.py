"""What the library counts."""

from __future__ import annotations

from holdfast.metrics import Metrics


class LibraryMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._pulled = metrics.counter("holdfast_library_pulled", "Entities sent in pulls")
        self._pushes = metrics.counter("holdfast_library_pushes", "Pushes by what became of them", "outcome")
        self._changes = metrics.counter("holdfast_library_changes", "Changes that took a version")
        self._proofs = metrics.counter(
            "holdfast_library_proofs", "Proofs of possession of a file by their outcome", "outcome"
        )

    def pulled(self, rows: int) -> None:
        self._pulled.add(amount=rows)

    def pushed(self, changes: int) -> None:
        self._pushes.add("accepted")
        self._changes.add(amount=changes)

    def replayed(self) -> None:
        self._pushes.add("replayed")

    def conflict(self) -> None:
        self._pushes.add("conflict")

    def refused(self) -> None:
        self._pushes.add("refused")

    def proof(self, outcome: str) -> None:
        self._proofs.add(outcome)
