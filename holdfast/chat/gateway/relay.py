"""What the processes of one house tell each other: wake-ups, receipts, who has a newer connection, calls.

    a commit here ─► Delivery (ours) ─► Relay ─► cluster ─► another process' Relay ─► reads the log ─► its Delivery

Of a message only its place travels; the process that hears of it reads it from the log, once for all its
connections. Anything may be lost on the way: heads are compared every 30 s and when the way is there again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence

import msgspec
from msgspec import Struct

from holdfast.chat import queries
from holdfast.chat.gateway.delivery import Delivery
from holdfast.chat.gateway.online import Online
from holdfast.chat.gateway.receipts import Receipt
from holdfast.chat.gateway.seats import Seats
from holdfast.chat.model import Gone, Kind, Revoked, Saved, Target
from holdfast.cluster import Cluster
from holdfast.errors import HoldfastError
from holdfast.log import get_logger
from holdfast.store import Database

log = get_logger("chat")


class SavedThere(Struct, frozen=True, tag="saved"):
    conversation: int
    kind: int
    peer: int
    first: int
    last: int
    revision: int


class ReceiptsThere(Struct, frozen=True, tag="receipts"):
    receipts: list[Receipt]


class RevokedThere(Struct, frozen=True, tag="revoked"):
    event: Revoked


class GoneThere(Struct, frozen=True, tag="gone"):
    conversation: int
    users: list[int]


class OpenedThere(Struct, frozen=True, tag="opened"):
    user: int
    generation: int


class FrameThere(Struct, frozen=True, tag="frame"):
    """For one user, as it is."""

    user: int
    frame: str


News = SavedThere | ReceiptsThere | RevokedThere | GoneThere | OpenedThere | FrameThere

_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(News).decode


class Relay:
    def __init__(
        self, cluster: Cluster, db: Database, online: Online, delivery: Delivery, seats: Seats
    ) -> None:
        self._cluster = cluster
        self._db = db
        self._online = online
        self._delivery = delivery
        self._seats = seats
        self._unread: dict[tuple[int, int], SavedThere] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        cluster.hear(self._heard)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- told here, and to the others

    def saved(self, event: Saved) -> None:
        self._delivery.saved(event)
        if not self._cluster.is_alone:
            target = event.target
            self._tell(
                SavedThere(
                    target.conversation,
                    target.kind,
                    target.peer,
                    event.messages[0].seq,
                    event.messages[-1].seq,
                    event.revision,
                )
            )

    def revoked(self, event: Revoked) -> None:
        self._delivery.revoked(event)
        self._tell(RevokedThere(event))

    def gone(self, event: Gone) -> None:
        self._delivery.gone(event)
        self._tell(GoneThere(event.conversation, list(event.users)))

    def pass_on(self, receipts: Sequence[Receipt]) -> None:
        self._delivery.pass_on(receipts)
        if not self._cluster.is_alone:
            self._tell(ReceiptsThere(list(receipts)))

    def opened(self, user: int, generation: int) -> None:
        """A connection of this generation is the user's newest here."""
        self._seats.settle(user, generation)
        self._cluster.arrived(user)
        self._tell(OpenedThere(user, generation))

    def tell_user(self, user: int, frame: bytes) -> None:
        """A critical frame to every connection of a user, wherever it is."""
        self._tell_here(user, frame)
        self._tell(FrameThere(user, frame.decode()))

    async def reaches(self, user: int) -> bool:
        """Is the user connected, here or to a process that can be told?"""
        if any(connection.is_open for connection in self._online.of(user)):
            return True
        return bool(await self._cluster.where(user))

    def _tell(self, news: News) -> None:
        if not self._cluster.is_alone:
            self._cluster.tell(_write(news))

    def _tell_here(self, user: int, frame: bytes) -> None:
        for connection in self._online.of(user):
            if connection.is_open:
                connection.send_critical(frame)

    # -- heard

    def _heard(self, what: bytes) -> None:
        news = _read(what)
        match news:
            case SavedThere():
                self._read_soon(news)
            case ReceiptsThere():
                self._delivery.pass_on(news.receipts)
            case RevokedThere():
                self._delivery.revoked(news.event)
            case GoneThere():
                self._delivery.gone(Gone(news.conversation, tuple(news.users)))
            case OpenedThere():
                self._seats.settle(news.user, news.generation)
            case FrameThere():
                self._tell_here(news.user, news.frame.encode())

    def _read_soon(self, news: SavedThere) -> None:
        if news.kind == Kind.SINGLE:
            concerned = bool(self._online.of(news.peer))
        else:
            concerned = self._delivery.concerns(news.conversation, news.revision)
        if not concerned:
            return
        key = (news.conversation, news.peer)
        waiting = self._unread.get(key)
        if waiting is None:
            self._unread[key] = news
            self._later(self._read(key))
        else:
            # read together with what is on its way
            self._unread[key] = msgspec.structs.replace(
                news, first=min(waiting.first, news.first), last=max(waiting.last, news.last)
            )

    async def _read(self, key: tuple[int, int]) -> None:
        await asyncio.sleep(0)  # what has come in the same moment is read together
        news = self._unread.pop(key)
        conversation, peer = key
        above = max(news.first, news.last - queries.PAGE + 1) - 1
        try:
            messages = await self._db.read(queries.between, conversation, above, news.last)
        except HoldfastError as error:
            log.warning("push_failed", chatId=str(conversation), error=error.reason, result="not_read")
            return
        target = Target(conversation, Kind(news.kind), peer)
        for message in messages:
            if message.sender != peer:
                self._delivery.saved(Saved(target, news.revision, (message,)))

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
