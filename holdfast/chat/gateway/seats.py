"""One session per user: the newest authenticated connection stays. A generation says which is newer.

On SQLite one process serves, and counts in memory. On PostgreSQL a row per user counts for all processes: whoever
finds a higher generation there than that of its own connection closes it, told by a push at once or by a look at
the rows every `LOOK_SECONDS`.
"""

from __future__ import annotations

from itertools import count

from holdfast.chat import actions, queries
from holdfast.chat.gateway.online import Online
from holdfast.chat.reasons import Reason
from holdfast.log import get_logger
from holdfast.store import Database

LOOK_SECONDS = 2.0
AT_ONCE = 1_000  # users in one look

log = get_logger("chat")


class Seats:
    def __init__(self, db: Database, online: Online, *, single: bool) -> None:
        self._db = db
        self._online = online
        self._single = single
        self._numbers = count(1)
        self._is_shared = single and db.backend == "postgresql"

    async def take(self, user: int) -> int:
        """The generation of a connection that is about to open."""
        if self._is_shared:
            return await self._db.write(actions.take_seat, user)
        return next(self._numbers)

    def settle(self, user: int, generation: int) -> None:
        """Nobody of a lower generation stays. Called when a connection has opened, here or elsewhere."""
        if not self._single:
            return
        for connection in self._online.of(user):
            if connection.is_open and connection.generation < generation:
                log.info("kicked", userId=user, connId=connection.id)
                connection.error(Reason.KICKED)

    def newest_here(self, user: int) -> int:
        return max((c.generation for c in self._online.of(user) if c.is_open), default=0)

    async def look(self) -> None:
        """Were seats taken in other processes?"""
        if not self._is_shared:
            return
        users = list(self._online.users)
        for at in range(0, len(users), AT_ONCE):
            for user, generation in await self._db.read(queries.seats, users[at : at + AT_ONCE]):
                self.settle(user, generation)
