"""The store's face: `write` an action, `read` a query, hear events after the commit.

    async def door(...):
        answer = await db.write(create_bill, actor, bill)     # returns after the commit
        page = await db.read(changes_page, owner, since)      # one snapshot

An action is a plain function over a `Transaction`, a query one over a `Snapshot`. The store knows rows and
threads; it must not know what any room keeps in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar, cast

from holdfast.store import migrations as numbered
from holdfast.store.command import Together
from holdfast.store.events import Events
from holdfast.store.healing import Healing
from holdfast.store.migrations import Migration
from holdfast.store.statement import Backend
from holdfast.store.transaction import Snapshot, Transaction

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")
X = TypeVar("X")


class StoreReset:
    """Event: a commit failed with unknown outcome; whoever keeps rows in memory reads them again."""


class Database(ABC):
    backend: Backend

    def __init__(self) -> None:
        self.events = Events()
        self.on_fatal: Callable[[str], None] = lambda _why: None
        """Called once, on the loop, when the store can no longer be trusted and the process must start over."""
        self._healing = Healing(lambda: self.trouble is not None, lambda: self.write_alone(numbered.touch))

    @abstractmethod
    async def start(self, migrations: Sequence[Migration]) -> None:
        """Opens the store and applies what is missing of `migrations`, under a lock."""

    @abstractmethod
    async def stop(self) -> None:
        """Takes no new work, finishes what was taken, closes."""

    async def claim(self, name: str) -> bool:
        """From now on this process alone does what `name` says, as long as the store is open; False when another
        process that shares the store does it. (The folder of an SQLite store has one process anyway.)"""
        return True

    @property
    @abstractmethod
    def trouble(self) -> str | None:
        """Why nothing can be written at the moment, or None."""

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> None:
        """`handler` hears every event of exactly this type after its commit (see `events`)."""
        self.events.subscribe(kind, handler)

    async def write(
        self, action: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Runs `action` and returns its result after the commit that holds it."""
        return await self._write(partial(_call, action, args, kwargs), alone=False)

    async def write_together(
        self, action: Callable[[Transaction, Sequence[X]], Sequence[T | Exception]], asked: X
    ) -> T:
        """As `write`, for what is asked for often: those who wait for the same `action` are given to it at once.

        It answers each with a result, or with the error to raise, which must have changed nothing. When it raises itself,
        all is undone, and each is run on its own. (PostgreSQL always runs each on its own.)
        """
        together = Together(cast("Callable[..., Sequence[object]]", action), asked)
        run = cast("Callable[[Transaction], T]", together.by_itself)
        return await self._write(run, alone=False, together=together)

    async def write_alone(
        self, action: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `write`, for a heavy action: it shares its commit with nobody, so that nobody waits for it twice."""
        return await self._write(partial(_call, action, args, kwargs), alone=True)

    async def write_in_turns(
        self, turn: Callable[Concatenate[Transaction, P], int], /, *args: P.args, **kwargs: P.kwargs
    ) -> int:
        """Repeats a deferrable `turn` (at most 1,000 rows each, says the house) until it reports 0 rows done."""
        total = 0
        while done := await self.write_alone(turn, *args, **kwargs):
            total += done
        return total

    async def read(
        self, query: Callable[Concatenate[Snapshot, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Runs `query` over one snapshot."""
        return await self._read(partial(_call, query, args, kwargs))

    async def glance(
        self, query: Callable[Concatenate[Snapshot, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """As `read`, for a few rows by key: SQLite answers on the spot, without a thread in between."""
        return await self._glance(partial(_call, query, args, kwargs))

    @abstractmethod
    async def _write(
        self, run: Callable[[Transaction], T], *, alone: bool, together: Together | None = None
    ) -> T: ...

    @abstractmethod
    async def _read(self, run: Callable[[Snapshot], T]) -> T: ...

    @abstractmethod
    async def _glance(self, run: Callable[[Snapshot], T]) -> T: ...


def _call(
    function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object], handle: Snapshot
) -> T:
    return function(handle, *args, **kwargs)
