"""Watches this process while something large passes through: its memory, and how late its loop is."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

MIB = 1024 * 1024


class Watched:
    def __init__(self) -> None:
        self.before = resident_mib()
        self.resident: list[float] = []
        self.late: list[float] = []

    @property
    def grown_mib(self) -> float:
        return max(self.resident) - self.before

    @property
    def usually_late(self) -> float:
        """The median, in seconds."""
        return sorted(self.late)[len(self.late) // 2]


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MIB


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    seen = Watched()
    loop = asyncio.get_running_loop()

    async def watch() -> None:
        while True:
            asked = loop.time()
            await asyncio.sleep(0.005)
            seen.late.append(loop.time() - asked - 0.005)
            seen.resident.append(resident_mib())

    watching = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        watching.cancel()
        await asyncio.wait([watching])
