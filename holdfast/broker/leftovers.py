"""Queues of ended sessions: what another member of a shared subscription may get goes there, the rest is removed in
turns, one session after the other, beside the running broker."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from holdfast.broker.message import Message
from holdfast.broker.store.purge import purge, shared_part
from holdfast.broker.store.rows import StoredMessage, unpacked
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

RETRY_SECONDS: Final = 1.0

log = get_logger("broker")


class Leftovers:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: deque[tuple[int, int]] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, session_id: int, sent: int) -> None:
        """`sent`: QoS 2 messages up to this number may be known to the client, and go to nobody else."""
        self._waiting.append((session_id, sent))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._remove_all())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def done(self) -> None:
        """Waits until nothing is left over."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _remove_all(self) -> None:
        while self._waiting:
            session_id, sent = self._waiting[0]
            try:
                await self._remove(session_id, sent)
            except HoldfastError as error:
                log.warning("leftovers_not_removed", error=error.reason)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._waiting.popleft()
        self._task = None

    async def _remove(self, session_id: int, sent: int) -> None:
        broker = self._broker
        await self._settle()  # everything that is to be in this queue is there
        above = 0
        while part := await broker.db.read(shared_part, session_id, sent, above):
            for stored in part:
                self._give(session_id, stored)
            above = part[-1].number
            await self._settle()
        await broker.db.write_in_turns(purge, session_id)

    async def _settle(self) -> None:
        if not await self._broker.journal.written():
            raise OutcomeUnknown

    def _give(self, session_id: int, stored: StoredMessage) -> None:
        """In one batch it leaves this queue and enters another."""
        message = Message(
            stored.topic,
            stored.payload,
            stored.qos,
            stored.retain,
            unpacked(stored.properties),
            stored.expires_ms,
        )
        message.id = stored.message_id or 0
        if stored.share is not None and self._broker.share_again(stored.share, message):
            self._broker.journal.removed_row(session_id, stored.number, stored.message_id)
