"""Events after commit: best effort, in memory, on the loop's thread.

A handler runs before the writer of the command goes on, so it must be quick: change a map, fill a queue, wake a
task. Whatever it would have done must also be reachable by reading, because a crash between the commit and the
event loses the event and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from holdfast.log import get_logger

E = TypeVar("E")

log = get_logger("store")


class Events:
    def __init__(self) -> None:
        self._handlers: dict[type, list[Callable[[object], None]]] = {}

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> None:
        self._handlers.setdefault(kind, []).append(cast("Callable[[object], None]", handler))

    def send(self, events: Iterable[object]) -> None:
        for event in events:
            for handler in self._handlers.get(type(event), ()):
                try:
                    handler(event)
                except Exception:
                    # the commit stands; a subscriber that fails must not take the answer away from the writer
                    log.exception("event_handler_failed", kind=type(event).__name__)
