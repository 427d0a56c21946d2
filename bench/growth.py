"""How a cost grows: the same step at a store of 1,000, 100,000 and 1,000,000 rows, and the factor it may grow by.

    steps, targets = growth("page", "a page of 100", MS, sizes=SIZES, grow=fill_to, run=one_page, at_most=1.5)

The steps come in order of size, because a store only grows; each size is measured on all contenders in turn
before the next is filled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bench.scenario import Measure, Step, Target, Values

H = TypeVar("H")

SIZES = (1_000, 100_000, 1_000_000)


def growth(
    key: str,
    title: str,
    cost: Measure,
    *,
    grow: Callable[[H, int], None],
    run: Callable[[H, float], Values],
    at_most: float,
    sizes: tuple[int, ...] = SIZES,
    only: frozenset[str] = frozenset(),
) -> tuple[tuple[Step[H], ...], tuple[Target, ...]]:
    """`grow` fills a contender up to a size (it may already hold less); `run` measures one cost at that size."""
    assert not cost.more_is_better, "a cost is better when it is less"
    steps = tuple(
        Step(
            f"{key}@{size}",
            f"{title}, {size:,} there",
            (cost,),
            run,
            prepare=partial(_grow, grow, size),
            only=only,
        )
        for size in sizes
    )
    first, *later = (step.key for step in steps)
    return steps, tuple(Target(step, cost.key, at_most=at_most, than_step=first) for step in later)


def _grow(grow: Callable[[H, int], None], size: int, handle: H) -> None:
    grow(handle, size)
