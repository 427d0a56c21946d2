"""Something between the room and its store: refuses, holds up, or lets the answer of a commit get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.store import Database


class Obstacle:
    """`refuse`: what each call raises instead; `after_commit`: what it raises once the commit has taken place."""

    def __init__(self) -> None:
        self.db: Any = None
        self.refuse: BaseException | None = None
        self.after_commit: BaseException | None = None
        self.only: Callable[..., Any] | None = None
        """The action or query it concerns; all if None."""
        self.opened = asyncio.Event()
        self.opened.set()
        self.held = 0

    def before(self, db: Database) -> Database:
        self.db = db
        return self  # type: ignore[return-value]  # it is asked like one

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    async def write(self, action: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._go(self.db.write, action, args, kwargs)

    async def read(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._go(self.db.read, query, args, kwargs)

    async def glance(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._go(self.db.glance, query, args, kwargs)

    async def _go(self, call: Any, what: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if self.only not in (None, what):
            return await call(what, *args, **kwargs)
        self.held += 1
        await self.opened.wait()
        self.held -= 1
        if self.refuse is not None:
            raise self.refuse
        answer = await call(what, *args, **kwargs)
        if self.after_commit is not None:
            raise self.after_commit
        return answer
