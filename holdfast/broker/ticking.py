"""What comes round twice a second: silence, slow readers, identities that are over, wills that are due. And the sweep,
once a minute: sessions and messages whose time is over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from holdfast.broker.beginning import BEAT_SECONDS
from holdfast.broker.packets import Reason
from holdfast.broker.peer import Peer, Stage
from holdfast.broker.store import purge
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.broker import Broker

TICK_SECONDS: Final = 0.5
ADMITTING_SECONDS: Final = 30.0
"""For a client that is being let in, on top of the time it had for its CONNECT."""

log = get_logger("broker")


class Ticking:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._task: asyncio.Task[None] | None = None
        self._beaten = 0.0

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                self.tick()
            except Exception:
                log.exception("tick_failed")

    def tick(self) -> None:
        broker = self._broker
        now, now_ms = broker.clock.monotonic(), broker.clock.now_ms()
        has_clients = False
        for peer in list(broker.peers):
            if peer.stage is Stage.OPEN:
                has_clients = True
                self._look_at_client(peer, now, now_ms)
            elif peer.stage is not Stage.CLOSED:
                self._look_at_newcomer(peer, now)
        broker.wills.look(now_ms)
        if has_clients and now - self._beaten >= BEAT_SECONDS:
            self._beaten = now
            broker.journal.beat()
        broker.turns.commit_later()

    def _look_at_newcomer(self, peer: Peer, now: float) -> None:
        patience = self._broker.settings.connect_timeout
        if peer.stage is Stage.ADMITTING:
            patience += ADMITTING_SECONDS
        if now - peer.last_heard > patience:
            log.info("connection_without_client", address=peer.transport.address)
            peer.abandon()

    def _look_at_client(self, peer: Peer, now: float, now_ms: int) -> None:
        since, patience = peer.unwritable_since, self._broker.settings.close_unwritable_after
        if since is not None and now - since > patience:
            session = peer.session
            log.info("client_too_slow", client=session.client_id if session is not None else None)
            peer.abandon()
            return
        if peer.was_heard or peer.is_held:
            peer.was_heard = False
            peer.last_heard = now
        elif peer.keep_alive and now - peer.last_heard > peer.keep_alive:
            peer.disconnect(Reason.KEEP_ALIVE_TIMEOUT)
            return
        if peer.identity is not None:
            reason = peer.identity.over(now_ms)
            if reason is not None:
                peer.disconnect(reason)

    async def sweep(self) -> int:
        broker = self._broker
        now_ms = broker.clock.now_ms()
        swept = 0
        for session in list(broker.sessions_by_id.values()):
            expires_ms = session.expires_ms()
            if expires_ms is not None and expires_ms <= now_ms:
                broker.departures.expire(session)
                swept += 1
        swept += broker.retained_messages.sweep(now_ms)
        broker.turns.commit_later()
        return swept + await self._sweep_queues(now_ms)

    async def _sweep_queues(self, now_ms: int) -> int:
        """Messages that expired while their clients are away."""
        broker = self._broker
        swept = 0
        while found := await broker.db.read(purge.expired, now_ms):
            before = swept
            for session_id, number, size, message_id in found:
                session = broker.sessions_by_number.get(session_id)
                if session is None or session.connection is not None or number <= session.outgoing.sent:
                    continue
                broker.journal.removed_row(session_id, number, message_id)
                session.outgoing.count -= 1
                session.outgoing.size -= size
                broker.counters.expired_messages += 1
                swept += 1
            if swept == before or not await broker.journal.written():
                break
        return swept
