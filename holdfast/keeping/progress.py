"""Long work tells how far it is; whoever watches decides what is shown."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def begin(self, what: str, total: int | None = None) -> None:
        """A new stretch of work, of `total` steps if that is known."""

    def advance(self, steps: int) -> None: ...


class Unwatched:
    def begin(self, what: str, total: int | None = None) -> None:
        pass

    def advance(self, steps: int) -> None:
        pass
