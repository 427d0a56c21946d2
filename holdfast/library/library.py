"""The room's face for its doors: pull, push, and what is logged and counted about them."""

from __future__ import annotations

from contextlib import suppress

from holdfast import feed
from holdfast.clock import Clock
from holdfast.errors import HoldfastError, VersionConflict
from holdfast.http.idempotency import Key
from holdfast.library import actions, pull
from holdfast.library.actions import Ground
from holdfast.library.checksum import checksum
from holdfast.library.ids import ServerIds
from holdfast.library.metrics import LibraryMetrics
from holdfast.library.model import Push, Pushed
from holdfast.library.plan import Outcome
from holdfast.log import get_logger
from holdfast.settings import Files
from holdfast.store import Database

HEAVY = 100  # changes; a push of more has its commit to itself

log = get_logger("library")


class Library:
    def __init__(self, db: Database, clock: Clock, files: Files, metrics: LibraryMetrics) -> None:
        self._db = db
        self._clock = clock
        self._files = files
        self._metrics = metrics
        self._ids = ServerIds(db)
        self._synced: dict[int, int] = {}
        self._epoch = ""

    async def start(self) -> None:
        # a restore, which makes a new one, is refused while a server runs
        self._epoch = await self._db.write(feed.ensure_epoch)

    async def stop(self) -> None:
        with suppress(HoldfastError):  # the store may be what we stop for
            await self.write_syncs()

    async def pull(self, asked: pull.Asked) -> pull.Pulled:
        found = await self._db.read(pull.pull, asked, self._epoch)
        self._synced[asked.user_id] = self._clock.now_ms()
        self._metrics.pulled(found.rows)
        log.info("pull", userId=asked.user_id, since=asked.since, returned=found.rows)
        return found

    async def checksum(self, user_id: int) -> feed.Checksum:
        return await self._db.read(checksum, user_id)

    async def push(self, user_id: int, key: Key | None, push: Push) -> Pushed:
        ids = await self._ids.reserve(push.creates)
        ground = Ground(user_id, self._epoch, self._clock.now_ms(), ids, self._files.instant_upload)
        write = self._db.write_alone if push.size > HEAVY else self._db.write
        try:
            answer, outcome = await write(actions.push, ground, key, push)
        except VersionConflict as conflict:
            self._conflict(user_id, push, conflict)
            raise
        except HoldfastError:
            self._metrics.refused()
            raise
        if outcome is None:
            self._metrics.replayed()
        else:
            self._pushed(user_id, push, outcome)
        return answer

    async def write_syncs(self) -> int:
        """When who pulled last; a crash loses the last minute of it."""
        synced, self._synced = self._synced, {}
        if synced:
            await self._db.write(actions.note_syncs, list(synced.items()))
        return len(synced)

    def _conflict(self, user_id: int, push: Push, conflict: VersionConflict) -> None:
        self._metrics.conflict()
        version = conflict.data.get("serverLibraryVersion") if isinstance(conflict.data, dict) else None
        log.warning(
            "version_conflict", userId=user_id, clientVersion=push.client_version, serverVersion=version
        )

    def _pushed(self, user_id: int, push: Push, outcome: Outcome) -> None:
        self._metrics.pushed(outcome.version - push.client_version)
        log.info(
            "push",
            userId=user_id,
            clientVersion=push.client_version,
            changes=push.size,
            version=outcome.version,
            ignored=len(outcome.ignored),
        )
        for ignored in outcome.ignored:
            log.warning("change_ignored", userId=user_id, what=ignored.what, why=ignored.why)
        for deleted in outcome.deleted:
            log.debug("deleted", userId=user_id, deleteKey=deleted.what, cascaded=deleted.cascaded)
