"""A tree of topic filters: which of them match a topic, found without looking at the others.

One node per level; a node that leads nowhere is gone. Nothing here recurses, so a filter may have as many
levels as its 65,535 bytes hold. Matching visits a node at most once: the work is bounded by the nodes on
levels that the topic has, and on an ordinary tree by levels times the wildcards met.
It does not know what is stored under a filter, nor who it belongs to.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Node(Generic[Key, Value]):
    """`here` belongs to the filter that ends at this node, `below` to the one that goes on with `#`."""

    __slots__ = ("below", "children", "here", "plus")

    def __init__(self) -> None:
        self.children: dict[str, _Node[Key, Value]] | None = None
        self.plus: _Node[Key, Value] | None = None
        self.here: dict[Key, Value] | None = None
        self.below: dict[Key, Value] | None = None

    def child(self, level: str) -> _Node[Key, Value] | None:
        if level == "+":
            return self.plus
        return self.children.get(level) if self.children else None

    def grow(self, level: str) -> _Node[Key, Value]:
        found = self.child(level)
        if found is not None:
            return found
        node: _Node[Key, Value] = _Node()
        if level == "+":
            self.plus = node
        elif self.children is None:
            self.children = {level: node}
        else:
            self.children[level] = node
        return node

    def cut(self, level: str) -> None:
        if level == "+":
            self.plus = None
        elif self.children is not None:
            del self.children[level]
            if not self.children:
                self.children = None

    def is_bare(self) -> bool:
        return self.children is None and self.plus is None and self.here is None and self.below is None


class FilterTree(Generic[Key, Value]):
    """Values by (filter, key); filters are well-formed, as `syntax` says."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _Node[Key, Value] = _Node()

    def put(self, pattern: str, key: Key, value: Value) -> Value | None:
        """Store a value, and return the one that was there."""
        levels, deep = _levels(pattern)
        node = self._root
        for level in levels:
            node = node.grow(level)
        entries = node.below if deep else node.here
        if entries is None:
            entries = {}
            if deep:
                node.below = entries
            else:
                node.here = entries
        before = entries.get(key)
        entries[key] = value
        return before

    def get(self, pattern: str, key: Key) -> Value | None:
        levels, deep = _levels(pattern)
        node: _Node[Key, Value] | None = self._root
        for level in levels:
            node = node.child(level) if node is not None else None
        if node is None:
            return None
        entries = node.below if deep else node.here
        return entries.get(key) if entries else None

    def remove(self, pattern: str, key: Key) -> Value | None:
        """Take a value out, with every node that then leads nowhere."""
        levels, deep = _levels(pattern)
        path = [self._root]
        for level in levels:
            node = path[-1].child(level)
            if node is None:
                return None
            path.append(node)
        last = path[-1]
        entries = last.below if deep else last.here
        if entries is None or key not in entries:
            return None
        value = entries.pop(key)
        if not entries:
            if deep:
                last.below = None
            else:
                last.here = None
            while len(path) > 1 and path.pop().is_bare():
                path[-1].cut(levels[len(path) - 1])
        return value

    def match(self, topic: str) -> list[dict[Key, Value]]:
        """The entries of every filter that matches a topic name: live dictionaries, not to be changed."""
        found: list[dict[Key, Value]] = []
        levels = topic.split("/")
        nodes = [self._root]
        wild = not topic.startswith("$")  # [MQTT-4.7.2-1]: only on the first level
        for level in levels:
            onward: list[_Node[Key, Value]] = []
            for node in nodes:
                if wild:
                    if node.below is not None:
                        found.append(node.below)
                    if node.plus is not None:
                        onward.append(node.plus)
                if node.children is not None:
                    child = node.children.get(level)
                    if child is not None:
                        onward.append(child)
            if not onward:
                return found
            nodes = onward
            wild = True
        for node in nodes:
            if node.here is not None:
                found.append(node.here)
            if node.below is not None:  # `a/#` matches `a` too (4.7.1.2)
                found.append(node.below)
        return found

    def nodes(self) -> int:
        """How many nodes there are besides the root."""
        return sum(1 for _ in self._walk()) - 1

    def _walk(self) -> Iterator[_Node[Key, Value]]:
        pending = [self._root]
        while pending:
            node = pending.pop()
            yield node
            if node.plus is not None:
                pending.append(node.plus)
            if node.children is not None:
                pending.extend(node.children.values())


def _levels(pattern: str) -> tuple[list[str], bool]:
    """The levels of a filter without a closing `#`, and whether it had one."""
    levels = pattern.split("/")
    if levels[-1] != "#":
        return levels, False
    levels.pop()
    return levels, True
