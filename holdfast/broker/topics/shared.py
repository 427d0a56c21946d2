"""Shared subscriptions (4.8.2): groups of sessions that divide the messages of a filter among them.

A group is one filter under one name; a session is in it once. Whose turn it is goes round; whether a member
can take a message now is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from holdfast.broker.topics.filter_tree import FilterTree
from holdfast.broker.topics.subscriptions import Grant
from holdfast.broker.topics.syntax import SharedFilter

S = TypeVar("S", bound=Hashable)


class SharedGroup(Generic[S]):
    """The members of one `$share/{name}/{filter}`, in the order in which they joined."""

    __slots__ = ("_grants", "_members", "_turn", "filter", "name")

    def __init__(self, name: str, pattern: str) -> None:
        self.name = name
        self.filter = pattern
        self._grants: dict[S, Grant] = {}
        self._members: list[S] = []
        self._turn = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member: object) -> bool:
        return member in self._grants

    @property
    def members(self) -> tuple[S, ...]:
        return tuple(self._members)

    def grant(self, member: S) -> Grant | None:
        return self._grants.get(member)

    def next(self, can_take: Callable[[S], bool]) -> tuple[S, Grant] | None:
        """The next member in turn that can take a message, None when none can."""
        count = len(self._members)
        for step in range(count):
            place = (self._turn + step) % count
            member = self._members[place]
            if can_take(member):
                self._turn = place + 1
                return member, self._grants[member]
        return None

    def join(self, member: S, grant: Grant) -> bool:
        is_new = member not in self._grants
        self._grants[member] = grant
        if is_new:
            self._members.append(member)
        return is_new

    def leave(self, member: S) -> bool:
        if self._grants.pop(member, None) is None:
            return False
        place = self._members.index(member)
        del self._members[place]
        if place < self._turn:
            self._turn -= 1
        return True


class SharedSubscriptions(Generic[S]):
    """All groups, found by topic."""

    __slots__ = ("_count", "_tree")

    def __init__(self) -> None:
        self._tree: FilterTree[str, SharedGroup[S]] = FilterTree()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def subscribe(self, subscriber: S, shared: SharedFilter, grant: Grant) -> bool:
        group = self._tree.get(shared.filter, shared.group)
        if group is None:
            group = SharedGroup(shared.group, shared.filter)
            self._tree.put(shared.filter, shared.group, group)
        is_new = group.join(subscriber, grant)
        self._count += is_new
        return is_new

    def unsubscribe(self, subscriber: S, shared: SharedFilter) -> bool:
        group = self._tree.get(shared.filter, shared.group)
        if group is None or not group.leave(subscriber):
            return False
        self._count -= 1
        if not len(group):
            self._tree.remove(shared.filter, shared.group)
        return True

    def group(self, shared: SharedFilter) -> SharedGroup[S] | None:
        return self._tree.get(shared.filter, shared.group)

    def groups(self, topic: str) -> list[SharedGroup[S]]:
        """The groups that each get one copy of a message with this topic."""
        if not self._count:
            return []
        return [group for entries in self._tree.match(topic) for group in entries.values()]

    def nodes(self) -> int:
        return self._tree.nodes()
