"""A command on its way: from the door's `await` to a thread of the store and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from holdfast.store.events import Events
from holdfast.store.transaction import Snapshot, Transaction

T = TypeVar("T")
S = TypeVar("S", bound=Snapshot)


class Command(Generic[S, T]):
    """`run` may be called more than once (a group that fell apart, a deadlock): the last run counts."""

    __slots__ = ("alone", "error", "events", "future", "result", "run", "started")

    def __init__(
        self, run: Callable[[S], T], future: asyncio.Future[T], started: float, *, alone: bool
    ) -> None:
        self.run = run
        self.future = future
        self.started = started
        self.alone = alone
        self.result: T
        self.error: BaseException | None = None
        self.events: list[object] = []

    @property
    def given_up(self) -> bool:
        return self.future.cancelled()

    def fail(self, error: BaseException) -> None:
        self.error = error
        self.events = []

    def answer(self) -> None:
        if self.future.done():  # the caller was cancelled; what was committed stays committed
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


Write = Command[Transaction, object]
Read = Command[Snapshot, object]


def answer_all(commands: Iterable[Command[Transaction, T]], events: Events) -> None:
    """On the loop: answers first, then the events of those that were committed."""
    for command in commands:
        command.answer()
        if command.events:
            events.send(command.events)
