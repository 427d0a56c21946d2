"""The figures for a person: one line per measure and peer, targets with their verdicts, what it ran on."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.figures import Figure, Judged, Result, Row
from bench.scenario import OURS

NEAR_CEILING = 0.8
QUIET = 0.75
"""The load before a run, per core, above which its figures are not ours alone."""


def show(result: Result, console: Console) -> None:
    table = Table(
        title=f"{result.scenario}: {result.about}",
        title_justify="left",
        caption=f"median of {result.turns} turns of {result.seconds_per_turn:g} s, one contender after the other in each",
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("least to most", no_wrap=True, style="dim")
    table.add_column("beside", no_wrap=True)
    table.add_column("theirs", justify="right", no_wrap=True)
    table.add_column("least to most", no_wrap=True, style="dim")
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("", no_wrap=True)
    step = ""
    for row in result.rows:
        if row.step != step:
            table.add_section()
            table.add_row(f"[bold]{row.title}[/]")
            step = row.step
        _add(table, row, result.ceilings)
    console.print(table)
    for line in (*notes(result), *machine_lines(result)):
        console.print(f"[dim]•[/] {escape(line)}", highlight=False)


def _add(table: Table, row: Row, ceilings: tuple[str, ...]) -> None:
    ours = row.figure(OURS)
    own = (number(ours.median), spread(ours)) if ours is not None else ("–", "")
    lines: list[tuple[str, ...]] = []
    for figure in row.figures:
        if figure.contender == OURS:
            continue
        name = figure.contender
        label = f"[dim]ceiling: {name}[/]" if name in ceilings else name
        ratio = f"{figure.ratio:.2f}" if figure.ratio is not None else ""
        judged = [judged for judged in row.judged if judged.beside == name]
        lines.append((label, number(figure.median), spread(figure), ratio, *_targets(judged)))
    if alone := [judged for judged in row.judged if judged.beside is None]:
        lines.append(("", "", "", "", *_targets(alone)))
    first, *more = lines or [("", "", "", "", "", "")]
    table.add_row(f"  {row.label}", *own, *first)
    for line in more:
        table.add_row("", "", "", *line)


def _targets(judged: list[Judged]) -> tuple[str, str]:
    return "\n".join(j.target for j in judged), "\n".join(_verdict(j.verdict, j.value) for j in judged)


def _verdict(verdict: str, value: float | None) -> str:
    if value is None:
        return f"[yellow]{verdict}[/]"
    return f"[green]met ({value:.3g})[/]" if verdict == "met" else f"[bold red]MISSED ({value:.3g})[/]"


def notes(result: Result) -> list[str]:
    notes = list(result.footnotes)
    if result.machine.load_before > QUIET * result.machine.cores:
        notes.append(
            f"the machine was busy before we began (load {result.machine.load_before:.1f} on {result.machine.cores} cores):"
            " ratios still say something, figures on their own and targets on them say little"
        )
    notes.extend(f"not measured: {name}: {why}" for name, why in result.absent.items())
    for row in result.rows:
        for ceiling in result.ceilings:
            limit = row.figure(ceiling)
            if limit is None or not row.more_is_better:
                continue
            for figure in row.figures:
                share = figure.median / limit.median
                if figure.contender == ceiling or share <= NEAR_CEILING:
                    continue
                reached = f"{figure.contender} is at {share:.0%} of what the load is known to reach"
                notes.append(f"{row.title}, {row.label}: {reached}; its own limit may be higher")
    return notes


def machine_lines(result: Result) -> list[str]:
    facts, after = result.machine, result.fsync_after
    versions = ", ".join(f"{name} {found}" for name, found in facts.versions.items())
    where = f"{facts.cpu}, {facts.cores} cores, {facts.memory_mib:,} MiB, Linux {facts.kernel}, {facts.filesystem}"
    load = f"load {facts.load_before:.2f} before, {result.load_after:.2f} after"
    before = f"p50 {facts.fsync.p50_ms:.2f} ms, p99 {facts.fsync.p99_ms:.2f} ms before"
    behind = f"{after.p50_ms:.2f} and {after.p99_ms:.2f} ms after"
    return [
        f"{result.started}, commit {facts.commit}; {where}; {load}",
        f"one fsync of 4 KiB here: {before}; {behind}",
        f"Python {facts.python}; {versions}",
    ]


def number(value: float) -> str:
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.1f}"


def spread(figure: Figure) -> str:
    return f"{number(figure.least)} to {number(figure.most)}"
