"""The end of a turn of the loop: sessions that may send are pumped, then every connection writes once, then what has
to be on disk is handed to the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.broker.packets import Reason
from holdfast.broker.session.session import Session
from holdfast.log import get_logger

if TYPE_CHECKING:
    from holdfast.broker.peer import Peer

log = get_logger("broker")


class Turns:
    """`number` names the turn: what was decided in it need not be decided again before it ends."""

    __slots__ = ("_commit", "_dirty", "_loop", "_pump", "_pumped", "_scheduled", "number")

    def __init__(self) -> None:
        self.number = 0
        self._dirty: list[Peer] = []
        self._pumped: list[Session] = []
        self._scheduled = False
        self._loop: asyncio.AbstractEventLoop
        self._pump: Callable[[Session], None]
        self._commit: Callable[[], None]

    def start(
        self, loop: asyncio.AbstractEventLoop, pump: Callable[[Session], None], commit: Callable[[], None]
    ) -> None:
        self._loop, self._pump, self._commit = loop, pump, commit

    def write_later(self, peer: Peer) -> None:
        self._dirty.append(peer)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.end)

    def pump_later(self, session: Session) -> None:
        if session.pumped:
            return
        session.pumped = True
        self._pumped.append(session)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.end)

    def commit_later(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.end)

    def end(self) -> None:
        """A session that has more than a turn's worth to send comes back in the next."""
        self._scheduled = False
        self.number += 1
        pumped, self._pumped = self._pumped, []
        for session in pumped:
            session.pumped = False
            try:
                self._pump(session)
            except Exception:
                # a mistake of ours with one session is no reason to leave out the others
                log.exception("session_not_pumped", client=session.client_id)
                if session.peer is not None:
                    session.peer.disconnect(Reason.UNSPECIFIED)
        dirty, self._dirty = self._dirty, []
        for peer in dirty:
            peer.flush()
        self._commit()
