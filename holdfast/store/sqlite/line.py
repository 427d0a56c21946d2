"""The line in front of the writer: small commands in one row, heavy ones in another, served in turn.

A small command waits for one heavy command at the most, however many of those wait; a heavy one waits for one
group. Commands are put from the loop and taken by the writer's thread alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from holdfast.store.command import Write


class Line:
    def __init__(self, drop: Callable[[Write], None]) -> None:
        """`drop` hears of commands whose callers gave up while they waited; they are not run."""
        self._drop = drop
        self._inlet: SimpleQueue[Write | None] = SimpleQueue()
        self._heavy: deque[Write] = deque()
        self._heavy_is_next = False
        self._closed = False

    # -- from the loop

    def put(self, command: Write) -> None:
        self._inlet.put(command)

    def close(self) -> None:
        """Nothing more will be put; what waits is still served."""
        self._inlet.put(None)

    # -- from the writer's thread

    def first(self) -> Write | None:
        """The command to begin with, waiting for one if need be; None when closed and served."""
        if self._heavy_is_next and (heavy := self._first_heavy()) is not None:
            return heavy
        small = self.small()
        if small is not None:
            self._heavy_is_next = True
            return small
        heavy = self._first_heavy()
        if heavy is not None:
            return heavy
        while not self._closed:
            command = self._inlet.get()
            if command is None:
                self._closed = True
            elif command.given_up:
                self._drop(command)
            else:
                self._heavy_is_next = not command.alone
                return command
        return None

    def small(self) -> Write | None:
        """The next small command, if one waits."""
        while not self._closed:
            try:
                command = self._inlet.get_nowait()
            except Empty:
                return None
            if command is None:
                self._closed = True
            elif command.given_up:
                self._drop(command)
            elif command.alone:
                self._heavy.append(command)
            else:
                return command
        return None

    def everything(self) -> list[Write]:
        """All that waits at this moment."""
        found = []
        while (small := self.small()) is not None:
            found.append(small)
        while (heavy := self._first_heavy()) is not None:
            found.append(heavy)
        return found

    def _first_heavy(self) -> Write | None:
        self._heavy_is_next = False
        while self._heavy:
            command = self._heavy.popleft()
            if not command.given_up:
                return command
            self._drop(command)
        return None
