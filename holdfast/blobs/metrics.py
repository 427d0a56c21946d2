"""What the room counts: bytes in and out, files that came, were there already, or went."""

from __future__ import annotations

from holdfast.metrics import Metrics


class BlobMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._bytes = metrics.counter("holdfast_blobs_bytes", "Bytes of files that passed", "direction")
        self._files = metrics.counter("holdfast_blobs_files", "Files, by what became of them", "what")

    def received(self, size: int) -> None:
        self._bytes.add("in", amount=size)

    def sent(self, size: int) -> None:
        """For a door that sends a file by its path."""
        self._bytes.add("out", amount=size)

    def stored(self) -> None:
        self._files.add("stored")

    def known(self) -> None:
        self._files.add("known")

    def collected(self, files: int) -> None:
        self._files.add("collected", amount=files)
