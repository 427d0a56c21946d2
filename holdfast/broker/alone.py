"""The broker as a whole program: `holdfast broker`, and the quickest way to have one inside another.

    async with BrokerAlone(settings) as alone:                 # or with hooks of your own
        await alone.broker.publish("state/lamp", b"on", retain=True)

Put together as in `app`: sockets bound → data folder locked → store migrated → broker → doors open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.broker.broker import Broker
from holdfast.broker.doors import Doors
from holdfast.broker.entry import FileHooks
from holdfast.broker.hooks import Hooks
from holdfast.broker.local_door import LocalDoor
from holdfast.broker.operator import Operator
from holdfast.broker.sys_topics import SysTopics
from holdfast.chores import Chore, Chores
from holdfast.clock import Clock, SystemClock
from holdfast.data_folder import DataFolder
from holdfast.errors import CannotStart
from holdfast.log import get_logger
from holdfast.metrics import Metrics
from holdfast.settings import Settings
from holdfast.store.migrations import of_rooms
from holdfast.store.opening import database_of

ROOMS = ("store", "broker")

log = get_logger("broker")


class BrokerAlone:
    """`hooks`: who comes in and what he may do; None: as the settings' files say."""

    def __init__(self, settings: Settings, hooks: Hooks | None = None, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.metrics = Metrics()
        self.folder = DataFolder(Path(settings.data))
        self.db = database_of(settings.store, self.folder.database, self.metrics)
        self._files = FileHooks(settings, self.clock) if hooks is None else None
        chosen = hooks or self._files
        assert chosen is not None
        self.broker = Broker(self.db, chosen, self.clock, settings.broker, self.metrics)
        self._doors = Doors(settings, self.metrics, self.broker.connect)
        self._sys_topics = SysTopics(self.broker, self.clock, settings.broker.sys_interval)
        self._local_door = LocalDoor(self.folder, Operator(self.broker))
        self._chores = Chores(Chore("mqtt", settings.broker.sweep_interval, self.broker.sweep))

    @property
    def addresses(self) -> Mapping[str, str]:
        """Each door's real address, for people and for the ready file."""
        return self._doors.addresses

    async def start(self) -> None:
        """Opens everything, or raises `CannotStart` with nothing half started."""
        async with AsyncExitStack() as undo:
            undo.callback(self._close_files)
            undo.push_async_callback(self._doors.close)
            self._doors.bind()
            self.folder.lock()
            undo.callback(self.folder.unlock)
            await self.db.start(of_rooms(*ROOMS))
            undo.push_async_callback(self.db.stop)
            await self.broker.start()
            undo.push_async_callback(self.broker.stop)
            self._sys_topics.start()
            undo.push_async_callback(self._sys_topics.stop)
            self._chores.start()
            undo.push_async_callback(self._chores.stop)
            await self._local_door.open()
            undo.push_async_callback(self._local_door.close)
            await self._doors.open()
            undo.pop_all()

    async def stop(self) -> None:
        self._doors.shut()
        await self._local_door.close()
        await self._chores.stop()
        await self._sys_topics.stop()
        await self.broker.close()
        await self._doors.close()
        await self.broker.stop()
        await self.db.stop()
        self.folder.unlock()
        self._close_files()

    def read_again(self) -> None:
        """SIGHUP: password and ACL file, certificates. A mistake in one of them is logged, and changes nothing."""
        try:
            if self._files is not None:
                self._files.read_again()
            self._doors.read_again()
        except CannotStart as error:
            log.error("files_not_read_again", why=str(error))
        else:
            log.info("files_read_again")

    def _close_files(self) -> None:
        if self._files is not None:
            self._files.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.shield(self.stop())
