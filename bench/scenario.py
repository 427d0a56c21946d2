"""What a scenario declares: contenders, steps, measures, targets. Plain data; `run` carries it out.

A scenario is one file in `bench/scenarios/` with a `SCENARIO`. Its contenders are processes (ours first), its
steps are measured on each contender in turn, again and again: A B C, A B C, … A step's `run` gets what the
contender's `start` gave and the seconds it may take, and answers a number for each of the step's measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

H = TypeVar("H")

Values = Mapping[str, float]
OURS = "holdfast"


class Measure(Struct, frozen=True):
    key: str
    unit: str
    title: str = ""
    more_is_better: bool = True


class Contender(Struct, Generic[H], frozen=True):
    """Who is measured: `start` begins it in a folder of its own and ends it when its context ends."""

    name: str
    start: Callable[[Path], AbstractContextManager[H]]
    ceiling: bool = False
    """Not a peer: a server so trivial that its figure is what the load itself can do at the least."""


class Step(Struct, Generic[H], frozen=True):
    key: str
    title: str
    measures: tuple[Measure, ...]
    run: Callable[[H, float], Values]
    prepare: Callable[[H], None] | None = None
    """Once per contender, before its first turn, not measured (filling a store, making users)."""
    only: frozenset[str] = frozenset()
    """The contenders that take part; empty: all."""
    warm_up: bool = True
    """A short turn first that does not count."""
    repeat: int | None = None
    """Turns, where the command line's number makes no sense."""

    def takes(self, contender: str) -> bool:
        return not self.only or contender in self.only


class Target(Struct, frozen=True):
    """`holdfast`'s figure, or its ratio to another figure, that has to be reached."""

    step: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None
    beside: str | None = None
    """The peer whose figure ours is divided by."""
    than_step: str | None = None
    """Our own earlier step whose figure ours is divided by: how a cost grows."""

    def met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )

    def spelled(self) -> str:
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"
        if self.beside is not None:
            return f"{bound} × {self.beside}"
        return f"{bound} × {self.than_step}" if self.than_step is not None else bound


class Scenario(Struct, Generic[H], frozen=True):
    name: str
    about: str
    contenders: tuple[Contender[H], ...]
    steps: tuple[Step[H], ...]
    targets: tuple[Target, ...] = ()
    footnotes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """A target that names nothing would never be missed."""
        measures = {(step.key, measure.key) for step in self.steps for measure in step.measures}
        names = {contender.name for contender in self.contenders}
        if self.contenders[0].name != OURS:
            raise ValueError(f"{self.name}: the first contender is {OURS!r}")
        if len(names) != len(self.contenders) or len({step.key for step in self.steps}) != len(self.steps):
            raise ValueError(f"{self.name}: two contenders or two steps have one name")
        for target in self.targets:
            known = (target.step, target.measure) in measures and (
                target.than_step is None or (target.than_step, target.measure) in measures
            )
            if not known or (target.beside is not None and target.beside not in names):
                raise ValueError(f"{self.name}: a target names what is not there: {target}")
            if target.at_least is None and target.at_most is None:
                raise ValueError(f"{self.name}: a target without a bound: {target}")
