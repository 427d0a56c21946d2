"""Who is connected to this process: user → connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView

from holdfast.chat.gateway.connection import Connection

NOBODY: tuple[Connection, ...] = ()


class Online:
    def __init__(self) -> None:
        self._of: dict[int, tuple[Connection, ...]] = {}
        self.connections: set[Connection] = set()
        """All of them, authenticated or not."""

    @property
    def users(self) -> KeysView[int]:
        return self._of.keys()

    def of(self, user: int) -> tuple[Connection, ...]:
        """A user's connections that are told of messages: open, or about to be."""
        return self._of.get(user, NOBODY)

    def of_all(self, users: Iterable[int]) -> Iterator[Connection]:
        for user in users:
            yield from self._of.get(user, NOBODY)

    def seat(self, connection: Connection) -> None:
        there = self._of.get(connection.user_id, NOBODY)
        if connection not in there:
            self._of[connection.user_id] = (*there, connection)

    def unseat(self, connection: Connection) -> None:
        left = tuple(other for other in self.of(connection.user_id) if other is not connection)
        if left:
            self._of[connection.user_id] = left
        else:
            self._of.pop(connection.user_id, None)
