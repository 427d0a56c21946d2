"""What a connection costs a server in memory: resident size of its process tree before and with them, idle."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench import tree
from bench.load.hold import Hold
from bench.processes import WORK, talker
from bench.scenario import Values

SETTLE_SECONDS = 1.0
OPEN_SECONDS = 120.0
FIRST = 50
"""Connections that are opened before the first look: a server's buffers and pools are made by its first clients."""


def per_connection(pid: int, address: str, greeting: bytes, count: int = 1_000) -> Values:
    """KiB of resident memory for each of `count` idle connections, and the tree's size with all of them."""
    with (
        tempfile.TemporaryDirectory(dir=WORK / "tmp") as folder,
        talker("bench.load.hold", Path(folder) / "log") as holder,
    ):
        holder.ask(Hold.of(address, FIRST, greeting), int, OPEN_SECONDS)
        time.sleep(SETTLE_SECONDS)
        before = tree.resident_bytes(pid)
        alive = holder.ask(Hold.of(address, count, greeting), int, OPEN_SECONDS)
        time.sleep(SETTLE_SECONDS)
        after = tree.resident_bytes(pid)
        if alive < FIRST + count:
            raise holder.child.failed(f"kept only {alive} of {FIRST + count} connections")
    return {"kib": (after - before) / count / 1024, "mib": after / 1024 / 1024}
