"""Live queries: an answer now, and another one whenever it has become a different one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

from holdfast.client.replica import Replica, View

T = TypeVar("T")


async def watched(replica: Replica, topics: Iterable[str], query: Callable[[View], T]) -> AsyncIterator[T]:
    """Changes that come while somebody still looks at the last answer are one change to him."""
    changed = replica.watch(topics)
    try:
        last = await replica.read(query)
        yield last
        while True:
            await changed.wait()
            changed.clear()
            now = await replica.read(query)
            if now != last:
                last = now
                yield now
    finally:
        replica.unwatch(changed)
