"""The retained messages: one value per topic, and a lazy walk over those that a filter matches.

A walk may take as long as its reader needs while topics come and go beneath it. It sees what was there when
it reached a level: a topic added later reaches the subscriber as an ordinary message, one removed meanwhile
is not reported. Storing copies a level only when a walk is on it (copy on write), so nothing is copied for
a walk itself, however many topics there are. What is stored under a topic it does not know.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

Message = TypeVar("Message")


class _Node(Generic[Message]):
    """`walks` counts the walks that are on this very `children`."""

    __slots__ = ("children", "message", "walks")

    def __init__(self) -> None:
        self.children: dict[str, _Node[Message]] = {}
        self.message: Message | None = None
        self.walks: list[int] = [0]

    def own(self) -> dict[str, _Node[Message]]:
        """The children, safe to change: those that a walk is on stay as they are."""
        if self.walks[0]:
            self.children = dict(self.children)
            self.walks = [0]
        return self.children

    def each(self) -> Generator[tuple[str, _Node[Message]], None, None]:
        walks = self.walks
        walks[0] += 1
        try:
            yield from self.children.items()
        finally:
            walks[0] -= 1


class RetainedTopics(Generic[Message]):
    __slots__ = ("_count", "_root")

    def __init__(self) -> None:
        self._root: _Node[Message] = _Node()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, topic: str) -> Message | None:
        node: _Node[Message] | None = self._root
        for level in topic.split("/"):
            node = node.children.get(level) if node is not None else None
        return node.message if node is not None else None

    def put(self, topic: str, message: Message) -> Message | None:
        """Store a message, and return the one it replaces."""
        node = self._root
        for level in topic.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.own()[level] = _Node()
            node = child
        before, node.message = node.message, message
        self._count += before is None
        return before

    def remove(self, topic: str) -> Message | None:
        """Take a message out, with every node that then leads nowhere."""
        levels = topic.split("/")
        path = [self._root]
        for level in levels:
            node = path[-1].children.get(level)
            if node is None:
                return None
            path.append(node)
        before, path[-1].message = path[-1].message, None
        if before is None:
            return None
        self._count -= 1
        while len(path) > 1:
            node = path.pop()
            if node.children or node.message is not None:
                break
            del path[-1].own()[levels[len(path) - 1]]
        return before

    def match(self, pattern: str) -> Iterator[tuple[str, Message]]:
        """The stored topics that a filter matches, with their messages, as the caller asks for them."""
        levels = pattern.split("/")
        last = len(levels) - 1
        walks = [_children(self._root, levels[0], is_first=True)]
        names: list[str] = []
        try:
            while walks:
                depth = len(walks) - 1
                del names[depth:]
                step = next(walks[-1], None)
                if step is None:
                    walks.pop()
                    continue
                name, node = step
                names.append(name)
                following = levels[min(depth + 1, last)]
                if depth < last or following == "#":
                    walks.append(_children(node, following))
                    if following != "#":  # `a/#` matches `a` too, `a/+` does not
                        continue
                if node.message is not None:
                    yield "/".join(names), node.message
        finally:
            for walk in reversed(walks):
                walk.close()

    def values(self, pattern: str) -> Iterator[Message]:
        """The messages that `match` finds, without their topics: half the work for all below one node (`a/b/#`)."""
        *prefix, last = pattern.split("/")
        if last != "#" or "+" in prefix:
            for _, message in self.match(pattern):
                yield message
            return
        node = self._root
        for level in prefix:
            following = node.children.get(level)
            if following is None:
                return
            node = following
        if node.message is not None:
            yield node.message
        walks = [node.each() if prefix else _children(node, last, is_first=True)]
        try:
            while walks:
                for _, child in walks[-1]:
                    if child.message is not None:
                        yield child.message
                    if child.children:
                        walks.append(child.each())
                        break
                else:
                    walks.pop()
        finally:
            for walk in reversed(walks):
                walk.close()

    def nodes(self) -> int:
        """How many nodes there are besides the root."""
        count, pending = -1, [self._root]
        while pending:
            node = pending.pop()
            count += 1
            pending.extend(node.children.values())
        return count


def _children(
    node: _Node[Message], level: str, *, is_first: bool = False
) -> Generator[tuple[str, _Node[Message]], None, None]:
    """The children of a node that one level of a filter matches."""
    if level not in ("+", "#"):
        child = node.children.get(level)
        if child is not None:
            yield level, child
        return
    for name, child in node.each():
        if not (is_first and name.startswith("$")):  # [MQTT-4.7.2-1]
            yield name, child
