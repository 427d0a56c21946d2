"""Removes what nobody keeps: at once when the last reference goes, and in sweeps what events missed.

A sweep may run in any number of processes at once, and be killed between any two of its steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

from holdfast.blobs import collection, owner, partials
from holdfast.blobs.files import Files
from holdfast.blobs.incoming import Incoming
from holdfast.blobs.metrics import BlobMetrics
from holdfast.blobs.model import Condemned, Kept, Orphaned
from holdfast.blobs.place import Place
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.log import get_logger
from holdfast.settings import Blobs
from holdfast.store import Database

STRAYS_EVERY_SECONDS = 24 * 3600.0
LISTED_AT_ONCE = 500

log = get_logger("blobs")


class Collector:
    def __init__(
        self,
        db: Database,
        files: Files,
        place: Place,
        incoming: Incoming,
        clock: Clock,
        settings: Blobs,
        metrics: BlobMetrics,
    ) -> None:
        self._db = db
        self._files = files
        self._place = place
        self._incoming = incoming
        self._clock = clock
        self._grace_ms = round(settings.grace_hours * 3_600_000)
        self._sweep_seconds = settings.sweep_minutes * 60
        self._metrics = metrics
        self._orphaned: set[str] = set()
        self._condemned: set[str] = set()
        self._wake = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        db.subscribe(Orphaned, self._on_orphaned)
        db.subscribe(Condemned, self._on_condemned)

    async def start(self) -> None:
        await self._files.on_thread(self._incoming.clean)
        self._working = asyncio.create_task(self._work())

    async def stop(self) -> None:
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])

    # -- what the events say

    def _on_orphaned(self, event: Orphaned) -> None:
        self._orphaned.add(event.sha256)
        self._wake.set()

    def _on_condemned(self, event: Condemned) -> None:
        self._condemned.add(event.name)
        self._wake.set()

    async def _work(self) -> None:
        clock = self._clock
        next_sweep, next_strays = clock.monotonic(), clock.monotonic() + self._sweep_seconds
        marked = False
        while True:
            try:
                # early, so that the place knows us before anybody can mistake it for theirs
                marked = marked or await self._ours()
                await self.collect()
                if clock.monotonic() >= next_sweep:
                    next_sweep = clock.monotonic() + self._sweep_seconds
                    await self.sweep()
                if clock.monotonic() >= next_strays:
                    next_strays = clock.monotonic() + STRAYS_EVERY_SECONDS
                    await self.remove_strays()
            except HoldfastError as error:
                # the store or the place is away: nothing is lost, the next sweep finds it
                log.warning("sweep_failed", error=error.reason)
            except Exception:
                log.exception("sweep_failed")
            try:
                await asyncio.wait_for(self._wake.wait(), self._sweep_seconds)
            except TimeoutError:
                continue

    # -- what there is to do

    async def collect(self) -> int:
        """What events told us since the last time."""
        self._wake.clear()
        orphaned, self._orphaned = self._orphaned, set()
        names, self._condemned = self._condemned, set()
        if orphaned:
            names.update(await self._condemn(orphaned))
        return await self._remove(names)

    async def sweep(self) -> int:
        """Everything that nobody keeps any more; answers how many files were removed."""
        now = self._clock.now_ms()
        await self._db.write_in_turns(collection.condemn_late, now - self._grace_ms, now)
        await self._db.write_in_turns(partials.expire, now)
        while guessed := await self._db.read(collection.condemnable, now):
            if not await self._condemn(guessed):
                break
        await self._db.write_in_turns(collection.drop_ended_claims, now)
        removed, above = 0, ""
        while names := await self._db.read(collection.condemned, above):
            removed += await self._remove(names)
            above = names[-1]
        if removed:
            log.info("files_collected", files=removed)
        return removed

    async def remove_strays(self) -> int:
        """Files that no table knows, older than the grace: their writer died after it had been given up.

        No upload can bring such a file to life any more, since only an announced one can be settled.
        """
        if not await self._ours():
            log.error("place_of_another", why="these files belong to another database: strays are left alone")
            return 0
        before = self._clock.now_ms() - self._grace_ms
        listing = self._place.listing()
        removed = 0
        while listed := await self._files.on_thread(partial(_some, listing)):
            names = [kept.name for kept in listed if kept.modified_ms < before]
            strays = await self._db.read(collection.unknown, names)
            if strays:
                await self._files.on_thread(partial(self._place.remove, strays))
                log.warning("strays_removed", files=len(strays))
                removed += len(strays)
        return removed

    async def _ours(self) -> bool:
        word = await self._db.write(owner.our_word)
        return await self._files.on_thread(partial(owner.belongs_to, self._place, self._incoming, word))

    async def _condemn(self, sha256s: Iterable[str]) -> list[str]:
        """Answers the names of the files that may now be removed."""
        names = []
        for turn in _turns(sha256s):
            names += await self._db.write_alone(collection.condemn, turn, self._clock.now_ms())
        self._metrics.collected(len(names))
        return names

    async def _remove(self, names: Iterable[str]) -> int:
        """`names` are committed as condemned: nobody can refer to these files, now or later.

        Whatever was condemned after the gate was shut finds it shut here, and waits for a later sweep.
        """
        if await self._db.read(collection.shut_until) > self._clock.now_ms():
            return 0
        removed = 0
        for turn in _turns(names):
            await self._files.on_thread(partial(self._place.remove, turn))
            removed += await self._db.write(collection.forget, turn)
        return removed


def _turns(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(sorted(names))
    while turn := list(islice(rest, collection.TURN)):
        yield turn


def _some(listing: Iterator[Kept]) -> list[Kept]:
    return list(islice(listing, LISTED_AT_ONCE))
