"""Who is in the books whose topic is in use: in memory, since each delivery asks. The store is the truth.

Read when a topic is first asked for, changed by this process's commits, and read again when it is older than what a
raised session may live on elsewhere: so another process's removal is seen within seconds.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from holdfast import feed
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.ledger import queries as sql
from holdfast.ledger.actions import Membership
from holdfast.log import get_logger
from holdfast.store import Database, Snapshot, StoreReset

MAX_AGE = 2.5
MOST_BOOKS = 100_000

log = get_logger("ledger")


def members(view: Snapshot, book_id: str) -> frozenset[int]:
    space = view.row(sql.SPACE_OF_BOOK, id=book_id)
    return frozenset() if space is None else frozenset(feed.members_of(view, [space])[space])


class BookMembers:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._known: OrderedDict[str, tuple[frozenset[int], float]] = OrderedDict()
        self._changes = 0
        self._reading: dict[str, asyncio.Task[None]] = {}
        db.subscribe(Membership, self._changed)
        db.subscribe(StoreReset, self._reset)

    async def ask(self, user_id: int, book_id: str) -> bool:
        """At subscribe, at publish and at resume: from the store."""
        await self._read(book_id)
        return self.known(user_id, book_id)

    def known(self, user_id: int, book_id: str) -> bool:
        """At delivery: from memory. What is not there, or old, is read for the next time."""
        found = self._known.get(book_id)
        if found is None or self._clock.monotonic() - found[1] > MAX_AGE:
            self._read_soon(book_id)
        return found is not None and user_id in found[0]

    async def stop(self) -> None:
        for task in list(self._reading.values()):
            task.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)

    async def _read(self, book_id: str) -> None:
        while True:
            changes, began = self._changes, self._clock.monotonic()
            found = await self._db.glance(members, book_id)
            if (
                changes == self._changes
            ):  # otherwise what was read may be older than what we were told meanwhile
                self._keep(book_id, found, began)
                return

    def _read_soon(self, book_id: str) -> None:
        if book_id in self._reading:
            return
        task = asyncio.create_task(self._read_quietly(book_id), name="ledger: members of a book")
        self._reading[book_id] = task
        task.add_done_callback(lambda _: self._reading.pop(book_id, None))

    async def _read_quietly(self, book_id: str) -> None:
        try:
            await self._read(book_id)
        except HoldfastError as error:
            self._known.pop(book_id, None)  # who cannot be known to be a member is none
            log.warning("members_unknown", book_id=book_id, error=error.reason)

    def _keep(self, book_id: str, found: frozenset[int], read_at: float) -> None:
        self._known[book_id] = found, read_at
        self._known.move_to_end(book_id)
        if len(self._known) > MOST_BOOKS:
            self._known.popitem(last=False)

    def _changed(self, event: Membership) -> None:
        # in the next turn, after what tells the leaver of it on the topic that he loses
        asyncio.get_running_loop().call_soon(self._apply, event)

    def _apply(self, event: Membership) -> None:
        self._changes += 1
        if event.book_id in self._known:
            self._keep(event.book_id, frozenset(event.members), self._clock.monotonic())

    def _reset(self, _event: StoreReset) -> None:
        self._changes += 1
        self._known.clear()
