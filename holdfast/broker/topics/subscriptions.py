"""Who gets a message: the subscription tree of all sessions, and the routes that a topic has through it.

A route is one subscriber's claim on a topic: overlapping subscriptions are merged into it (3.3.4), so a
subscriber appears once. What goes out over which connection, the session decides.

The routes of a topic are remembered until a subscription that could change them does: publishers repeat
their topics, and a fan-out then costs one dictionary look-up. A plain filter forgets its own topic, a
wildcard forgets everything.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import msgspec

from holdfast.broker.topics.filter_tree import FilterTree

S = TypeVar("S", bound=Hashable)

REMEMBERED_ROUTES: Final = 200_000
"""Bound of the memory: a topic counts one and its routes one each."""


class Grant(msgspec.Struct, frozen=True, gc=False):
    """What a subscription was granted. `identifier` is 0 when the client gave none."""

    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0


class Route(msgspec.Struct, Generic[S], frozen=True):
    """One subscriber's merged claim on a topic: the highest QoS, all identifiers."""

    subscriber: S
    grants: tuple[Grant, ...]
    qos: int
    retain_as_published: bool
    identifiers: tuple[int, ...]
    has_no_local: bool

    def for_publisher(self) -> Route[S] | None:
        """The claim when the subscriber itself published: without its no-local subscriptions."""
        if not self.has_no_local:
            return self
        grants = tuple(grant for grant in self.grants if not grant.no_local)
        return merge(self.subscriber, grants) if grants else None


def merge(subscriber: S, grants: tuple[Grant, ...]) -> Route[S]:
    return Route(
        subscriber,
        grants,
        max(grant.qos for grant in grants),
        any(grant.retain_as_published for grant in grants),
        tuple(sorted({grant.identifier for grant in grants if grant.identifier})),
        any(grant.no_local for grant in grants),
    )


class Subscriptions(Generic[S]):
    """Every subscription that is not shared, of connected and of waiting sessions alike."""

    __slots__ = ("_count", "_remembered", "_remembered_size", "_tree")

    def __init__(self) -> None:
        self._tree: FilterTree[S, Route[S]] = FilterTree()
        self._remembered: dict[str, tuple[Route[S], ...]] = {}
        self._remembered_size = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def subscribe(self, subscriber: S, pattern: str, grant: Grant) -> bool:
        """Add a subscription or replace it [MQTT-3.8.4-3]; True when there was none."""
        is_new = self._tree.put(pattern, subscriber, merge(subscriber, (grant,))) is None
        self._count += is_new
        self._forget(pattern)
        return is_new

    def unsubscribe(self, subscriber: S, pattern: str) -> bool:
        """Remove a subscription; the filter is compared character by character [MQTT-3.10.4-1]."""
        existed = self._tree.remove(pattern, subscriber) is not None
        if existed:
            self._count -= 1
            self._forget(pattern)
        return existed

    def get(self, subscriber: S, pattern: str) -> Grant | None:
        route = self._tree.get(pattern, subscriber)
        return route.grants[0] if route is not None else None

    def routes(self, topic: str) -> tuple[Route[S], ...]:
        """One route for each subscriber with a matching filter."""
        remembered = self._remembered.get(topic)
        if remembered is not None:
            return remembered
        routes = self._find(topic)
        self._remembered_size += 1 + len(routes)
        if self._remembered_size > REMEMBERED_ROUTES:
            self._forget_all()
            self._remembered_size = 1 + len(routes)
        self._remembered[topic] = routes
        return routes

    def nodes(self) -> int:
        return self._tree.nodes()

    def _find(self, topic: str) -> tuple[Route[S], ...]:
        matches = self._tree.match(topic)
        if len(matches) == 1:
            return tuple(matches[0].values())
        routes: dict[S, Route[S]] = {}
        overlapping: dict[S, list[Grant]] = {}
        for entries in matches:
            for subscriber, route in entries.items():
                first = routes.setdefault(subscriber, route)
                if first is not route:
                    overlapping.setdefault(subscriber, list(first.grants)).extend(route.grants)
        for subscriber, grants in overlapping.items():
            routes[subscriber] = merge(subscriber, tuple(grants))
        return tuple(routes.values())

    def _forget(self, pattern: str) -> None:
        if "+" in pattern or pattern.endswith("#"):
            self._forget_all()
            return
        routes = self._remembered.pop(pattern, None)
        if routes is not None:
            self._remembered_size -= 1 + len(routes)

    def _forget_all(self) -> None:
        self._remembered.clear()
        self._remembered_size = 0
