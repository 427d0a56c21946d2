"""The local database: opened at once, written to by actions, watched by whoever shows something.

Knows threads, commits, topics. Must not know what a book is, nor that there is a server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from holdfast.client.replica.lease import Lease
from holdfast.client.replica.schema import prepare
from holdfast.client.replica.transaction import Transaction, View
from holdfast.client.replica.worker import ELSEWHERE, Job, Reader, Writer, connect

T = TypeVar("T")


class Replica:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lease = Lease(path)
        self._watchers: dict[asyncio.Event, frozenset[str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Makes the file if there is none. Only its owner may read it: it holds a session."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.touch(mode=0o600)
        self._loop = asyncio.get_running_loop()
        writing = connect(self.path)
        prepare(writing)
        self._writer = Writer(writing, "holdfast-writer", self._told)
        self._reader = Reader(connect(self.path), "holdfast-reader")

    def close(self) -> None:
        """Waits for what was asked for, then lets go of the file."""
        self._writer.close()
        self._reader.close()
        self.lease.leave()

    @property
    def files(self) -> Path:
        """The folder for contents, beside the database."""
        return self.path.with_name(self.path.name + ".files")

    async def write(self, action: Callable[[Transaction], T], *, durable: bool = True) -> T:
        """Returns when what `action` did is committed."""
        return await self._writer.ask(Job(action, durable=durable))

    async def apply(self, action: Callable[[Transaction], T]) -> T:
        """A write of what the server holds: committed, and not waited for on the disk, since it can be had again."""
        return await self.write(action, durable=False)

    async def read(self, query: Callable[[View], T]) -> T:
        return await self._reader.ask(Job(query, durable=False))

    @property
    def busy(self) -> bool:
        return bool(self._writer.waiting or self._reader.waiting)

    # -- watching

    def watch(self, topics: Iterable[str]) -> asyncio.Event:
        """An event that is set after each commit that changed one of the topics; hand it back to `unwatch`."""
        event = asyncio.Event()
        self._watchers[event] = frozenset(topics) | {ELSEWHERE}
        return event

    def unwatch(self, event: asyncio.Event) -> None:
        self._watchers.pop(event, None)

    def tell(self, *topics: str) -> None:
        """Wakes watchers without a change."""
        self._wake(frozenset(topics))

    def _told(self, topics: frozenset[str]) -> None:
        """On the writer's thread, after a commit."""
        loop = self._loop
        assert loop is not None
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._wake, topics)

    def _wake(self, topics: frozenset[str]) -> None:
        for event, wanted in self._watchers.items():
            if not wanted.isdisjoint(topics):
                event.set()


def fsync_folder(folder: Path) -> None:
    """So that a new name in it survives a power failure; some systems do not know folders as files."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
