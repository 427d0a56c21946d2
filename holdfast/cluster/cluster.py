"""What a room may ask of the processes around it. This class is the answer when there are none, or none to be reached.

cluster.tell(b"…")                       every other process hears it, perhaps
await cluster.where(7)                   which processes said that user 7 is with them; None: nobody knows
await cluster.lock("sweep", 5.0)         True: it is yours; False: another has it; None: nobody knows
await cluster.recall(["a", "b"])         what was remembered; None for what is not known
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence


class Cluster:
    """Alone."""

    async def start(self, namespace: str) -> None:
        """`namespace`: the same for every process on the same history of the same database, and for no other."""

    async def stop(self) -> None: ...

    def hear(self, listener: Callable[[bytes], None]) -> None:
        """`listener` hears, on the loop, what other processes tell. Before `start`."""

    def on_back(self, listener: Callable[[], None]) -> None:
        """`listener` hears that something told, here or elsewhere, may have been lost, and that we hear again."""

    def tell(self, what: bytes) -> None:
        """Returns at once and never raises."""

    def arrived(self, user: int) -> None:
        """This user is with us."""

    def left(self, user: int) -> None: ...

    def still_here(self, users: Iterable[int]) -> None:
        """Said again and again: a process that died must be forgotten."""

    async def where(self, user: int) -> Sequence[str] | None:
        return ()

    async def lock(self, name: str, seconds: float) -> bool | None:
        return True

    def remember(self, what: Mapping[str, bytes], seconds: int) -> None: ...

    async def recall(self, names: Sequence[str]) -> Sequence[bytes | None]:
        return [None] * len(names)

    @property
    def is_alone(self) -> bool:
        return True
