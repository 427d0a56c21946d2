"""What has to be on disk before somebody is told: one batch that is being committed, one that is being collected.

    journal.enqueued(entry) · removed(entry) · subscribed(…) · …      note a change, at once and in order
    journal.reply(peer, puback)                                        leaves with the commit that holds it

A batch begins to be committed at the end of a turn of the loop when none is under way. One that holds nothing but
messages to connected clients waits 2 ms first: most of them are acknowledged by then, and never written. A batch that
fails is tried again until it succeeds; whoever waited for it is told that it failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from holdfast.broker.batch import ENTRY_WEIGHT, Batch, Ids, frozen, sessions_of
from holdfast.broker.message import Message
from holdfast.broker.session.entry import Entry
from holdfast.broker.session.session import Session
from holdfast.broker.store.apply import apply
from holdfast.broker.store.rows import Changes, StoredWill, Trim, Trimmed
from holdfast.broker.topics import Grant
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.log import get_logger
from holdfast.store import Database

if TYPE_CHECKING:
    from holdfast.broker.peer import Peer

GATHER_SECONDS: Final = 0.002
RELAXED_SECONDS: Final = 0.1
RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0)
log = get_logger("broker")


class Journal:
    """`on_commit` hears which sessions a commit may have opened, `on_trim` what was cut off a queue's beginning."""

    HEAVY: Final = 8 * 1024 * 1024
    """Bytes that may wait for the disk; above it nobody who publishes is read."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        relaxed: bool,
        trim_of: Callable[[Session], Trim | None],
        on_commit: Callable[[list[Session]], None],
        on_trim: Callable[[list[Trimmed]], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self.relaxed = relaxed
        self._trim_of = trim_of
        self._on_commit = on_commit
        self._on_trim = on_trim
        self.ids = Ids()
        self.batch = Batch(1)
        self.committed = 0
        self.trouble: str | None = None
        self._writing: Batch | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self, last_batch: int, last_message_id: int) -> None:
        self.committed = last_batch
        self.batch = Batch(last_batch + 1)
        self.ids.last = last_message_id

    # -- changes

    def enqueued(self, entry: Entry) -> None:
        """A message for a persistent session. Its publisher waits until it is written or acknowledged."""
        batch, message, session = self.batch, entry.message, entry.session
        entry.batch = batch.number
        batch.entries.append(entry)
        batch.dirty = True
        message.rows += 1
        batch.weight += ENTRY_WEIGHT
        if message.rows == 1:
            batch.weight += message.size
        if not self.relaxed:
            entry.settled = False
            message.waiting += 1
        if entry.qos == 2:
            batch.urgent = True
            if not self.relaxed:
                entry.hold = batch.number
        elif session.peer is None or session.outgoing.spilled:
            batch.urgent = True
        if session.outgoing.spilled:
            session.outgoing.spill = batch.number

    def removed(self, entry: Entry) -> None:
        """A message has left its queue: acknowledged, dropped, expired, or given to another session."""
        batch = self.batch
        message = entry.message
        if entry.batch == batch.number:
            message.rows -= 1  # it is not written at all
        else:
            batch.removals.setdefault(entry.session, []).append(entry.number)
            entry.session.outgoing.removal = batch.number
            if message.id:
                batch.unreferenced.add(message.id)
            batch.dirty = batch.urgent = True
        if not entry.settled:
            entry.settled = True
            message.settled()

    def removed_row(self, session_id: int, number: int, message_id: int | None) -> None:
        """A message that was not in memory."""
        self.batch.removed_rows.append((session_id, number))
        if message_id:
            self.batch.unreferenced.add(message_id)
        self._touch()

    def released(self, entry: Entry) -> None:
        """The client has it; until that is on disk, it is not told so, also where it waits to be sent again."""
        self.batch.released.append(entry)
        if not self.relaxed:
            entry.hold = self.batch.number
        self._touch()

    def will_send(self, session: Session, number: int) -> int:
        """Messages up to `number` may be sent once the batch that is answered is committed."""
        self.batch.loaded[session] = number
        self._touch()
        return self.batch.number

    def overfull(self, session: Session) -> None:
        """The oldest messages of a queue that is only in the store have to go."""
        self.batch.trims[session] = None

    def received_id(self, session: Session, packet_id: int) -> None:
        self.batch.inbound[session.id, packet_id] = True
        self._touch()

    def released_id(self, session: Session, packet_id: int) -> None:
        self.batch.inbound[session.id, packet_id] = False
        self._touch()

    def changed(self, session: Session) -> None:
        self.batch.sessions[session] = None
        self._touch()

    def ended(self, session: Session) -> None:
        self.batch.gone[session.id] = None
        if session.outgoing.holds():
            self.batch.left_behind[session.id] = session.outgoing.sent
        self._touch()

    def subscribed(self, session: Session, name: str, grant: Grant | None) -> None:
        """`None`: no longer."""
        self.batch.subscriptions[session.id, name] = grant
        self._touch()

    def retained(self, topic: str, message: Message | None, before: Message | None) -> None:
        self.batch.retained[topic] = message
        if before is not None and before.id:
            self.batch.unreferenced.add(before.id)
        self.batch.weight += ENTRY_WEIGHT + (message.size if message is not None else 0)
        self._touch()

    def will(self, client_id: str, will: StoredWill | None) -> None:
        self.batch.wills[client_id] = will
        self._touch()

    def beat(self) -> None:
        """Says that the broker is running."""
        self._touch()

    def _touch(self) -> None:
        self.batch.dirty = self.batch.urgent = True

    # -- who waits

    def reply(self, peer: Peer, data: bytes) -> None:
        """Sends it when everything that happened so far is on disk."""
        latest = self._latest()
        if latest is None:
            peer.send(data)
        else:
            latest.replies.append((peer, data))

    def holds(self, message: Message) -> None:
        """The message's publisher waits for everything that happened so far."""
        latest = self._latest()
        if latest is not None:
            message.waiting += 1
            latest.messages.append(message)

    def call(self, function: Callable[[bool], None]) -> None:
        """Calls it when everything that happened so far is on disk (True), or may not be (False)."""
        latest = self._latest()
        if latest is None:
            function(True)
        else:
            latest.calls.append(function)

    async def settled(self) -> bool:
        """Waits until everything that happened so far is on disk; False when it may not be. With relaxed durability
        nobody waits for that."""
        return True if self.relaxed else await self.written()

    async def written(self) -> bool:
        """The same with any durability: for whoever reads back from the store what happened in memory."""
        latest = self._unwritten()
        if latest is None:
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def done(committed: bool) -> None:
            if not future.done():
                future.set_result(committed)

        latest.calls.append(done)
        if self.relaxed and self._writing is None:
            self._begin()
        else:
            self.turn()
        return await future

    def _latest(self) -> Batch | None:
        return None if self.relaxed else self._unwritten()

    def _unwritten(self) -> Batch | None:
        return self.batch if self.batch.dirty else self._writing

    @property
    def is_clean(self) -> bool:
        """Everything that happened is on disk."""
        return self._writing is None and not self.batch.dirty

    @property
    def weight(self) -> int:
        """Bytes that wait for the disk."""
        return self.batch.weight + (self._writing.weight if self._writing is not None else 0)

    # -- committing

    def turn(self) -> None:
        """At the end of a turn of the loop: begins a commit if it is time."""
        if self._writing is not None or not self.batch.dirty:
            return
        if self.batch.urgent and not self.relaxed:
            self._begin()
        elif self._timer is None:
            delay = RELAXED_SECONDS if self.relaxed else GATHER_SECONDS
            self._timer = asyncio.get_running_loop().call_later(delay, self._gathered)

    async def drain(self) -> None:
        """Commits what there is, and waits for it."""
        while self._writing is not None or self.batch.dirty:
            if self._writing is None:
                self._begin()
            await self._idle.wait()

    def give_up(self) -> None:
        """The process ends although the store takes nothing."""
        if self._task is not None:
            self._task.cancel()
        self._stop_timer()

    def _gathered(self) -> None:
        self._timer = None
        if self._writing is None and self.batch.dirty:
            self._begin()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._stop_timer()
        batch = self.batch
        self.batch = Batch(batch.number + 1)
        self._writing = batch
        self._idle.clear()
        if batch.is_empty():
            self._end(batch, [])
            return
        trims = [trim for session in batch.trims if (trim := self._trim_of(session)) is not None]
        changes = frozen(batch, self.ids, self._clock.now_ms(), trims)
        self._task = asyncio.get_running_loop().create_task(self._commit(batch, changes))

    async def _commit(self, batch: Batch, changes: Changes) -> None:
        failures = 0
        while True:
            try:
                trimmed = await self._db.write(apply, changes)
            except Exception as error:  # noqa: BLE001 - whatever it was, the changes must not be lost
                self._failed(batch, error)
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
            else:
                break
        if self.trouble is not None:
            log.info("batch_written_after_trouble", failures=failures)
            self.trouble = None
        self._end(batch, trimmed)

    def _failed(self, batch: Batch, error: Exception) -> None:
        if isinstance(error, HoldfastError):
            self.trouble = error.message
            log.error("batch_failed", error=error.reason, entries=len(batch.entries))
        else:
            self.trouble = "the store refused a batch"
            log.error("batch_failed", exc_info=error, entries=len(batch.entries))
        batch.failed()

    def _end(self, batch: Batch, trimmed: list[Trimmed]) -> None:
        self._writing = None
        self.committed = batch.number
        try:
            batch.committed()
        except Exception:
            # it is on disk, whatever one of those who waited for it made of that
            log.exception("commit_not_told", batch=batch.number)
        if trimmed:
            self._on_trim(trimmed)
        self._on_commit(list(sessions_of(batch)))
        self.turn()
        if self._writing is None:
            self._idle.set()
