"""Medians, ratios, verdicts: pure."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import figures, machine, report
from bench.growth import growth
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values

RATE = Measure("rate", "1/s")
COST = Measure("cost", "ms", more_is_better=False)


def nothing(_handle: None, _seconds: float) -> Values:
    return {}


def contender(name: str) -> Contender[None]:
    return Contender(name, lambda _folder: nullcontext())


def scenario(*targets: Target, steps: tuple[Step[None], ...] | None = None) -> Scenario[None]:
    steps = steps or (Step("a", "a step", (RATE, COST), nothing),)
    return Scenario("test", "a test", (contender(OURS), contender("peer")), steps, targets)


def only_verdict(made: Scenario[None], measured: dict[tuple[str, str], figures.Turns]) -> figures.Judged:
    (judged,) = [judged for row in figures.rows(made, measured) for judged in row.judged]  # type: ignore[arg-type]
    return judged


def test_a_ratio_is_taken_within_each_turn_so_that_what_slows_both_cancels_out() -> None:
    figure = figures.Figure.of("peer", [100.0, 10.0, 50.0], ours=[200.0, 20.0, 100.0])
    assert figure.ratio == 2.0


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=9), st.floats(0.1, 100))
def test_a_peer_that_is_always_as_much_slower_has_that_ratio(turns: list[float], factor: float) -> None:
    figure = figures.Figure.of("peer", turns, [turn * factor for turn in turns])
    assert figure.ratio == pytest.approx(factor)
    assert figure.least <= figure.median <= figure.most


@pytest.mark.parametrize(("ours", "verdict"), [(79.0, "MISSED"), (80.0, "met"), (200.0, "met")])
def test_a_target_beside_a_peer_is_judged_by_the_ratio(ours: float, verdict: str) -> None:
    judged = only_verdict(
        scenario(Target("a", "rate", at_least=0.8, beside="peer")),
        {("a", "rate"): {OURS: [ours], "peer": [100.0]}},
    )
    assert judged.verdict == verdict


@pytest.mark.parametrize(("ours", "verdict"), [(19.9, "met"), (20.1, "MISSED")])
def test_a_target_without_a_peer_is_judged_by_our_median(ours: float, verdict: str) -> None:
    judged = only_verdict(
        scenario(Target("a", "cost", at_most=20.0)), {("a", "cost"): {OURS: [1.0, ours, 99.0]}}
    )
    assert judged.verdict == verdict


def test_a_target_beside_a_peer_that_was_not_there_is_not_met() -> None:
    made = scenario(Target("a", "rate", at_least=0.8, beside="peer"))
    judged = only_verdict(made, {("a", "rate"): {OURS: [1.0]}})
    assert judged.verdict == "not measured"


@pytest.mark.parametrize(
    "target",
    [
        Target("b", "rate", at_least=1),
        Target("a", "speed", at_least=1),
        Target("a", "rate", at_least=1, beside="nobody"),
        Target("a", "rate", at_least=1, than_step="b"),
        Target("a", "rate"),
    ],
)
def test_a_target_that_could_never_be_missed_is_refused(target: Target) -> None:
    with pytest.raises(ValueError, match="target"):
        scenario(target)


@pytest.mark.parametrize(("at_a_million", "verdict"), [(14.0, "met"), (16.0, "MISSED")])
def test_a_cost_may_grow_by_the_factor_and_no_more(at_a_million: float, verdict: str) -> None:
    steps, targets = growth(
        "page", "a page", COST, sizes=(1_000, 1_000_000), grow=lambda _h, _n: None, run=nothing, at_most=1.5
    )
    made = scenario(*targets, steps=steps)
    measured: dict[tuple[str, str], figures.Turns] = {
        ("page@1000", "cost"): {OURS: [10.0]},
        ("page@1000000", "cost"): {OURS: [at_a_million]},
    }
    assert only_verdict(made, measured).verdict == verdict


def test_growth_fills_up_to_each_size_before_it_is_measured() -> None:
    filled: list[int] = []
    steps, _ = growth(
        "page", "a page", COST, sizes=(10, 20), grow=lambda _h, n: filled.append(n), run=nothing, at_most=2
    )
    for step in steps:
        assert step.prepare is not None
        step.prepare(None)
    assert filled == [10, 20]


def test_a_section_of_the_page_is_replaced_and_the_rest_left_alone() -> None:
    fsync = machine.Fsync(0.1, 0.2)
    facts = machine.Machine("cpu", 2, 1, "6", "ext4", 0.0, "3.11", {}, "abc", fsync)
    made = scenario(Target("a", "rate", at_least=0.8, beside="peer"))
    page = "# Page\n\n<!-- other: begin -->\nkept\n<!-- other: end -->\n"
    for rate in (10.0, 4_321.0):
        found = figures.rows(made, {("a", "rate"): {OURS: [rate], "peer": [rate * 2]}})  # type: ignore[arg-type]
        result = figures.Result("test", "a test", "2026", 1.0, 1, facts, fsync, 0.0, found)
        page = report.put(page, result)
    assert page.count("### test") == 1
    assert "| 1/s | 4,321 | peer | 8,642 | 0.50 | ≥ 0.8 × peer | MISSED |" in page
    assert " 10 |" not in page
    assert "kept" in page
