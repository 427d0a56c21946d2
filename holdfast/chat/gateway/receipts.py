"""Acknowledgements on their way to the cursors: collected for a moment, written in one transaction, then passed on.

What is collected may be lost with the process: its messages are then written to their reader once more, and
acknowledged once more. A sender is told after the commit, and only of what moved a cursor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from holdfast.chat import actions, rules
from holdfast.chat.actions import Audit, Move
from holdfast.chat.model import CursorMoved, Kind
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.log import get_logger
from holdfast.metrics import Counter, Metrics
from holdfast.settings.chat import Chat
from holdfast.store import Database

MOST_MOVES = 500  # in one transaction
RETRY_SECONDS = 1.0
MOST_SENDERS = 256  # of whose messages one batch tells, in one conversation of one reader

log = get_logger("chat")


class Receipt(Struct, frozen=True):
    """What a message's sender is told: somebody has received, or read, everything of yours up to here."""

    ack_type: str
    kind: int
    conversation: int
    user: int
    sender: int
    message: int
    seq: int
    ts: int


class Ack(Struct, frozen=True):
    """One acknowledgement, with what its log line says."""

    ack_type: str
    kind: int
    conversation: int
    user: int
    message: int
    seq: int
    sender: int
    cursor: int
    """How far the cursor may go: beyond `seq` when what follows is the user's own."""
    device_id: str
    connection: int


_Key = tuple[int, int]  # conversation, user


class _Collected:
    """What one member has acknowledged in one conversation since the last write."""

    __slots__ = ("delivered", "kind", "last", "read", "senders")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.delivered = 0
        self.read = 0
        self.last: dict[str, Ack] = {}
        self.senders: dict[tuple[int, str], tuple[int, int]] = {}

    def add(self, ack: Ack) -> None:
        if ack.ack_type == "read":
            self.read = max(self.read, ack.seq)
        self.delivered = max(self.delivered, ack.cursor)
        if ack.message == 0:
            return
        last = self.last.get(ack.ack_type)
        if last is None or ack.seq >= last.seq:
            self.last[ack.ack_type] = ack
        key = (ack.sender, ack.ack_type)
        if ack.sender != ack.user and (key in self.senders or len(self.senders) < MOST_SENDERS):
            self.senders[key] = max(self.senders.get(key, (0, 0)), (ack.seq, ack.message))


class Receipts:
    def __init__(
        self,
        db: Database,
        settings: Chat,
        metrics: Metrics,
        instance: str,
        clock: Clock,
        pass_on: Callable[[Sequence[Receipt]], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        self._instance = instance
        self._pass_on = pass_on
        self._acks: Counter = metrics.counter(
            "holdfast_chat_acks", "Acknowledgements from clients", "type", "result"
        )
        self._collected: dict[_Key, _Collected] = {}
        self._audits: list[Audit] = []
        self._users: set[int] = set()
        """Of whom something is collected."""
        self._users_written: set[int] = set()
        """Of whom something is being written."""
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        metrics.gauge(
            "holdfast_chat_acks_waiting", "Cursors that wait to be written", lambda: len(self._collected)
        )

    def add(self, ack: Ack, audit: Audit | None = None) -> None:
        key = (ack.conversation, ack.user)
        collected = self._collected.get(key)
        if collected is None:
            collected = self._collected[key] = _Collected(ack.kind)
            self._users.add(ack.user)
        collected.add(ack)
        if audit is not None:
            self._audits.append(audit)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._settings.ack_batch_ms / 1000, self._begin)

    def own(self, kind: int, conversation: int, user: int, seq: int) -> None:
        """Their own messages carry the delivered cursor along."""
        self.add(Ack("delivered", kind, conversation, user, 0, 0, user, seq, "", 0))

    async def flush(self) -> None:
        """Until what was collected by now is written, or could not be."""
        if self._writing is not None:
            await asyncio.shield(self._writing)
        if self._collected:
            self._begin()
            if self._writing is not None:
                await asyncio.shield(self._writing)

    async def flush_of(self, user: int) -> None:
        """The same, if anything of this user waits."""
        if user in self._users or user in self._users_written:
            await self.flush()

    def flush_soon(self) -> None:
        """A client has gone: what it said is written without waiting for more."""
        if self._collected:
            self._begin()

    async def stop(self) -> None:
        await self.flush()
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is None and self._collected:
            collected, self._collected = self._collected, {}
            audits, self._audits = self._audits, []
            self._users, self._users_written = set(), self._users
            self._writing = asyncio.get_running_loop().create_task(self._write_all(collected, audits))

    async def _write_all(self, collected: dict[_Key, _Collected], audits: list[Audit]) -> None:
        """What was collected when it began: what comes meanwhile waits for the next time."""
        wait = self._settings.ack_batch_ms / 1000
        keys = sorted(collected)
        try:
            for at in range(0, len(keys), MOST_MOVES):
                batch = {key: collected[key] for key in keys[at : at + MOST_MOVES]}
                if not await self._write_some(batch, audits):
                    self._put_back({key: collected[key] for key in keys[at:]}, audits)
                    wait = RETRY_SECONDS
                    break
                audits = []
        finally:
            self._writing = None
            self._users_written = set()
            if self._collected and self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(wait, self._begin)

    async def _write_some(self, batch: dict[_Key, _Collected], audits: list[Audit]) -> bool:
        moves = [Move(*key, each.delivered, each.read, each.kind) for key, each in batch.items()]
        try:
            moved = await self._db.write(actions.move_cursors, moves, audits)
        except HoldfastError as error:
            log.warning("acks_not_written", error=error.reason, cursors=len(moves))
            return False
        except Exception:
            # a mistake of ours must not take every later acknowledgement with it
            log.exception("acks_not_written", cursors=len(moves))
            return True
        self._tell(batch, moved)
        return True

    def _put_back(self, batch: dict[_Key, _Collected], audits: list[Audit]) -> None:
        self._audits[:0] = audits
        self._users.update(user for _, user in batch)
        for key, older in batch.items():
            newer = self._collected.get(key)
            if newer is None:
                self._collected[key] = older
                continue
            newer.delivered = max(newer.delivered, older.delivered)
            newer.read = max(newer.read, older.read)
            for ack_type, ack in older.last.items():
                newer.last.setdefault(ack_type, ack)
            for sender, place in older.senders.items():
                newer.senders[sender] = max(newer.senders.get(sender, (0, 0)), place)

    # -- after the commit

    def _tell(self, batch: dict[_Key, _Collected], moved: Sequence[CursorMoved]) -> None:
        receipts: list[Receipt] = []
        now_ms = self._clock.now_ms()
        by_key = {(move.conversation, move.user_id): move for move in moved}
        for key, collected in batch.items():
            move = by_key.get(key)
            for ack in collected.last.values():
                self._log(ack, move)
            if move is None or not self._is_passed_on(collected, move):
                continue
            for (sender, ack_type), (seq, message) in collected.senders.items():
                before = move.read_before if ack_type == "read" else move.delivered_before
                if seq > before:
                    receipts.append(
                        Receipt(ack_type, collected.kind, key[0], key[1], sender, message, seq, now_ms)
                    )
        if receipts:
            self._pass_on(receipts)

    def _is_passed_on(self, collected: _Collected, move: CursorMoved) -> bool:
        if collected.kind == Kind.SINGLE:
            return True
        return rules.passes_receipts_on(self._settings.group, move.members)

    def _log(self, ack: Ack, move: CursorMoved | None) -> None:
        is_read = ack.ack_type == "read"
        before = after = ack.seq
        if move is not None:
            before, after = (
                (move.read_before, move.read) if is_read else (move.delivered_before, move.delivered)
            )
        result = "moved" if move is not None and after > before else "no_change"
        self._acks.add(ack.ack_type, result)
        write = log.info if result == "moved" else log.debug
        write(
            "ack",
            serverMsgId=str(ack.message),
            chatType="single" if ack.kind == Kind.SINGLE else "group",
            chatId=str(ack.conversation),
            fromUserId=str(ack.sender),
            ackUserId=str(ack.user),
            ackType=ack.ack_type,
            deviceId=ack.device_id,
            connId=ack.connection,
            instanceId=self._instance,
            prevCursor=str(before),
            newCursor=str(after),
            result=result,
        )
