"""A command on its way: from the door's `await` to a thread of the store and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from holdfast.errors import ActionFailed
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
        self.error = _fit_to_raise(error)
        self.events = []

    def answer(self) -> None:
        if self.future.done():  # the caller was cancelled; what was committed stays committed
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


def _fit_to_raise(error: BaseException) -> BaseException:
    """What an action raises reaches its caller as it is, but for what would end or confuse the caller's task."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    said = ActionFailed()
    said.__cause__ = error
    return said


Write = Command[Transaction, object]
Read = Command[Snapshot, object]


def answer_all(commands: Sequence[Command[Transaction, T]], events: Events) -> None:
    """On the loop: all answers first, so that no handler can keep one back, then the committed commands' events.

    An answered caller goes on in a later turn of the loop, so the handlers still run before it does.
    """
    for command in commands:
        command.answer()
    for command in commands:
        if command.events:
            events.send(command.events)
