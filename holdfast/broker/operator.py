"""What an operator may ask of a running broker, and what he may do to it: the same over HTTP and over the local door.

Each question is a value, so that it travels; an answer is a page at most, so that none stops the loop for long.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct

from holdfast.broker.broker import Broker
from holdfast.broker.inspection import QueuedInfo, RetainedInfo, SessionInfo, SubscriptionInfo
from holdfast.broker.topics.syntax import topic_filter_fault
from holdfast.errors import InvalidField, NotFound

T = TypeVar("T")

PAGE = 1_000
Limit = Annotated[int, Meta(ge=1, le=10_000)]
Id = Annotated[str, Meta(min_length=1, max_length=65_535)]
Name = Annotated[str, Meta(max_length=65_535)]


class Page(Struct, Generic[T], frozen=True):
    """`next` is the `after` of the page that follows; None: this was the last."""

    items: list[T]
    next: str | None = None


class Overview(Struct, frozen=True):
    """How much of everything there is, and what has been counted since the start."""

    connected: int
    sessions: int
    subscriptions: int
    retained: int
    queued: int
    queued_bytes: int
    messages_received: int
    messages_sent: int
    dropped: dict[str, int]
    refused: dict[str, int]


class Done(Struct, frozen=True):
    done: bool = True


class LookAround(Struct, frozen=True, tag="overview"):
    pass


class Sessions(Struct, frozen=True, tag="sessions"):
    after: Name = ""
    limit: Limit = PAGE


class OneSession(Struct, frozen=True, tag="session"):
    client_id: Id


class Subscriptions(Struct, frozen=True, tag="subscriptions"):
    """Of one client, or of all, client by client."""

    client_id: Name = ""
    after: Name = ""
    limit: Limit = PAGE


class Retained(Struct, frozen=True, tag="retained"):
    filter: Id = "#"
    limit: Limit = PAGE


class Queue(Struct, frozen=True, tag="queue"):
    client_id: Id
    limit: Limit = 100


class Kick(Struct, frozen=True, tag="kick"):
    client_id: Id


class DeleteSession(Struct, frozen=True, tag="delete_session"):
    client_id: Id


class ClearRetained(Struct, frozen=True, tag="clear_retained"):
    topic: Id


Question = (
    LookAround
    | Sessions
    | OneSession
    | Subscriptions
    | Retained
    | Queue
    | Kick
    | DeleteSession
    | ClearRetained
)


class Operator:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def answer(self, question: Question) -> object:
        match question:
            case LookAround():
                return self.overview()
            case Sessions():
                return self.sessions(question)
            case OneSession():
                return self.session(question)
            case Subscriptions():
                return self.subscriptions(question)
            case Retained():
                return self.retained(question)
            case Queue():
                return await self.queue(question)
            case Kick():
                return await self.kick(question)
            case DeleteSession():
                return await self.delete_session(question)
            case ClearRetained():
                return await self.clear_retained(question)

    def overview(self) -> Overview:
        broker, counters = self._broker, self._broker.counters
        return Overview(
            connected=broker.connected,
            sessions=broker.session_count,
            subscriptions=broker.subscription_count,
            retained=broker.retained_count,
            queued=broker.queued_count,
            queued_bytes=broker.queued_bytes,
            messages_received=counters.publish_received,
            messages_sent=counters.publish_sent,
            dropped=dict(counters.drops),
            refused=dict(counters.refusals),
        )

    def sessions(self, asked: Sessions) -> Page[SessionInfo]:
        """By client id."""
        return _page(self._some_after(asked.after, asked.limit + 1), asked.limit)

    def session(self, asked: OneSession) -> SessionInfo:
        found = self._broker.session(asked.client_id)
        if found is None:
            raise NotFound("there is no session of this client id")
        return found

    def subscriptions(self, asked: Subscriptions) -> Page[SubscriptionInfo]:
        """One client's are never torn apart by the end of a page."""
        if asked.client_id:
            self.session(OneSession(asked.client_id))
            return Page(_by_filter(self._broker.subscriptions(asked.client_id)))
        found: list[SubscriptionInfo] = []
        page = self.sessions(Sessions(asked.after, asked.limit))
        for session in page.items:
            if len(found) >= asked.limit:
                return Page(found, found[-1].client_id)
            found += _by_filter(self._broker.subscriptions(session.client_id))
        return Page(found, page.next)

    def retained(self, asked: Retained) -> Page[RetainedInfo]:
        """`next` only says that there are more: a narrower filter shows them."""
        if topic_filter_fault(asked.filter) is not None:
            raise InvalidField("filter", "is no topic filter")
        some = list(islice(self._broker.retained(asked.filter), asked.limit + 1))
        items = some[: asked.limit]
        return Page(items, items[-1].topic if len(some) > len(items) else None)

    async def queue(self, asked: Queue) -> Page[QueuedInfo]:
        """The oldest first."""
        self.session(OneSession(asked.client_id))
        some = await self._broker.queue(asked.client_id, asked.limit + 1)
        items = some[: asked.limit]
        return Page(items, str(items[-1].number) if len(some) > len(items) else None)

    async def kick(self, asked: Kick) -> Done:
        if not await self._broker.kick(asked.client_id):
            raise NotFound("this client is not connected")
        return Done()

    async def delete_session(self, asked: DeleteSession) -> Done:
        if not await self._broker.delete_session(asked.client_id):
            raise NotFound("there is no session of this client id")
        return Done()

    async def clear_retained(self, asked: ClearRetained) -> Done:
        if not await self._broker.clear_retained(asked.topic):
            raise NotFound("nothing is retained on this topic")
        return Done()

    def _some_after(self, after: str, count: int) -> list[SessionInfo]:
        later = (client_id for client_id in self._broker.sessions_by_id if client_id > after)
        found = map(self._broker.session, heapq.nsmallest(count, later))
        return [info for info in found if info is not None]


def _page(some: list[SessionInfo], limit: int) -> Page[SessionInfo]:
    items = some[:limit]
    return Page(items, items[-1].client_id if len(some) > limit else None)


def _by_filter(found: Iterable[SubscriptionInfo]) -> list[SubscriptionInfo]:
    return sorted(found, key=lambda subscription: subscription.filter)


def every(pages: Iterable[Page[T]]) -> Iterator[T]:
    """What the pages hold, one after the other."""
    for page in pages:
        yield from page.items
