"""From the single turns to medians, ratios and verdicts: pure, and what is kept as JSON.

A ratio is the median of the ratios within each turn, ours and the peer's measured one right after the other: what
the machine did to both at that moment cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from msgspec import Struct, field

from bench.machine import Fsync, Machine
from bench.scenario import OURS, Scenario, Target

Turns = dict[str, list[float]]
"""Contender → one number per turn."""


class Figure(Struct, frozen=True):
    """What one contender reached."""

    contender: str
    turns: tuple[float, ...]
    median: float
    least: float
    most: float
    ratio: float | None = None
    """Ours divided by it."""

    @classmethod
    def of(cls, contender: str, turns: Sequence[float], ours: Sequence[float]) -> Figure:
        ratio = None
        if contender != OURS and ours and all(turns):
            ratio = median(mine / theirs for mine, theirs in zip(ours, turns, strict=False))
        return cls(contender, tuple(turns), median(turns), min(turns), max(turns), ratio)


class Judged(Struct, frozen=True):
    target: str
    beside: str | None
    value: float | None
    verdict: Literal["met", "MISSED", "not measured"]


class Row(Struct, frozen=True):
    step: str
    title: str
    measure: str
    label: str
    more_is_better: bool
    figures: tuple[Figure, ...]
    judged: tuple[Judged, ...] = ()

    def figure(self, contender: str) -> Figure | None:
        return next((figure for figure in self.figures if figure.contender == contender), None)


class Result(Struct, frozen=True):
    scenario: str
    about: str
    started: str
    seconds_per_turn: float
    turns: int
    machine: Machine
    fsync_after: Fsync
    load_after: float
    rows: tuple[Row, ...]
    absent: dict[str, str] = field(default_factory=dict)
    """Contenders that could not be measured, and why."""
    footnotes: tuple[str, ...] = ()
    ceilings: tuple[str, ...] = ()
    """Contenders that are no peers: what the load is known to reach."""

    def missed(self) -> list[Judged]:
        return [judged for row in self.rows for judged in row.judged if judged.verdict != "met"]


def rows(scenario: Scenario[object], measured: Mapping[tuple[str, str], Turns]) -> tuple[Row, ...]:
    """Every measure of every step that somebody was measured on, with its targets judged."""
    made: dict[tuple[str, str], Row] = {}
    for step in scenario.steps:
        for measure in step.measures:
            turns = measured.get((step.key, measure.key), {})
            if not any(turns.values()):
                continue
            ours = turns.get(OURS, [])
            figures = tuple(Figure.of(name, numbers, ours) for name, numbers in turns.items() if numbers)
            made[step.key, measure.key] = Row(
                step.key,
                step.title,
                measure.key,
                f"{measure.title}, {measure.unit}" if measure.title else measure.unit,
                measure.more_is_better,
                figures,
            )
    for key, row in made.items():
        judged = tuple(
            _judge(target, row, made) for target in scenario.targets if (target.step, target.measure) == key
        )
        made[key] = Row(row.step, row.title, row.measure, row.label, row.more_is_better, row.figures, judged)
    return tuple(made.values())


def _judge(target: Target, row: Row, made: Mapping[tuple[str, str], Row]) -> Judged:
    value = _value(target, row, made)
    if value is None:
        return Judged(target.spelled(), target.beside, None, "not measured")
    return Judged(target.spelled(), target.beside, value, "met" if target.met(value) else "MISSED")


def _value(target: Target, row: Row, made: Mapping[tuple[str, str], Row]) -> float | None:
    if target.beside is not None:
        peer = row.figure(target.beside)
        return peer.ratio if peer is not None else None
    ours = row.figure(OURS)
    if ours is None or target.than_step is None:
        return ours.median if ours is not None else None
    earlier = made.get((target.than_step, target.measure))
    before = earlier.figure(OURS) if earlier is not None else None
    return ours.median / before.median if before is not None and before.median else None
