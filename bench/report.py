"""Puts results into docs/benchmarks.md, each between its scenario's marks; the rest of the page is left alone.

python -m bench.report RESULT.json ...
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench import results, table
from bench.figures import Figure, Result, Row
from bench.processes import ROOT
from bench.scenario import OURS

PAGE = ROOT / "docs" / "benchmarks.md"


def section(result: Result) -> str:
    about = f"{result.about[:1].upper()}{result.about[1:]}"
    lines = [
        f"### {result.scenario}",
        "",
        f"{about}. Median of {result.turns} turns of {result.seconds_per_turn:g} s (least to most).",
        "",
        "| | ours | beside | theirs | ratio | target | |",
        "|---|--:|---|--:|--:|---|---|",
    ]
    step = ""
    for row in result.rows:
        if row.step != step:
            step = row.step
            lines.append(f"| **{row.title}** | | | | | | |")
        lines.extend(_lines(row))
    lines.append("")
    lines.extend(f"- {line}" for line in (*table.notes(result), *table.machine_lines(result)))
    return "\n".join(lines)


def _lines(row: Row) -> list[str]:
    ours = row.figure(OURS)
    own = _spelled(ours) if ours is not None else "–"
    cells = []
    for figure in row.figures:
        if figure.contender == OURS:
            continue
        judged = [judged for judged in row.judged if judged.beside == figure.contender]
        ratio = f"{figure.ratio:.2f}" if figure.ratio is not None else ""
        target = ", ".join(j.target for j in judged)
        cells.append(
            (figure.contender, _spelled(figure), ratio, target, ", ".join(j.verdict for j in judged))
        )
    alone = [judged for judged in row.judged if judged.beside is None]
    if alone or not cells:
        target = ", ".join(j.target for j in alone)
        cells.insert(0, ("", "", "", target, ", ".join(j.verdict for j in alone)))
    heads = [(row.label, own)] + [("", "")] * (len(cells) - 1)
    return [f"| {' | '.join((*head, *rest))} |" for head, rest in zip(heads, cells, strict=True)]


def _spelled(figure: Figure) -> str:
    if len(figure.turns) == 1:
        return table.number(figure.median)
    return f"{table.number(figure.median)} ({table.spread(figure)})"


def put(page: str, result: Result) -> str:
    """The page with this scenario's section replaced, or added at its end."""
    begin, end = f"<!-- {result.scenario}: begin -->", f"<!-- {result.scenario}: end -->"
    text = f"{begin}\n{section(result)}\n{end}"
    before, found, rest = page.partition(begin)
    if not found:
        return f"{page.rstrip()}\n\n{text}\n"
    return before + text + rest.partition(end)[2]


def main(paths: list[str]) -> None:
    page = PAGE.read_text("utf-8")
    for path in paths:
        page = put(page, results.read(Path(path)))
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
