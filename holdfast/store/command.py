"""A command on its way: from the door's `await` to a thread of the store and back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from holdfast.errors import ActionFailed
from holdfast.store.events import Events
from holdfast.store.transaction import Snapshot, Transaction

T = TypeVar("T")
S = TypeVar("S", bound=Snapshot)


class Together(NamedTuple):
    """A command that may be run with others of its kind: one call for all of them."""

    action: Callable[[Transaction, Sequence[object]], Sequence[object]]
    asked: object

    def with_others(self, tx: Transaction, asked: Sequence[object]) -> Sequence[object]:
        """One outcome for each; what is an exception is raised to who asked."""
        outcomes = self.action(tx, asked)
        if len(outcomes) != len(asked):
            raise ActionFailed
        return outcomes

    def by_itself(self, tx: Transaction) -> object:
        (outcome,) = self.with_others(tx, (self.asked,))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


class Command(Generic[S, T]):
    """`run` may be called more than once (a group that fell apart, a deadlock): the last run counts."""

    __slots__ = ("alone", "error", "events", "future", "result", "run", "started", "together")

    def __init__(
        self,
        run: Callable[[S], T],
        future: asyncio.Future[T],
        started: float,
        *,
        alone: bool,
        together: Together | None = None,
    ) -> None:
        self.run = run
        self.future = future
        self.started = started
        self.alone = alone
        self.together = together
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
