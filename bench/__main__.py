"""`python -m bench` lists the scenarios; `python -m bench NAME` measures one."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import results, scenarios, table
from bench.peers.install import PeerUnavailable
from bench.processes import ChildFailed, ended_cleanly
from bench.run import run
from bench.scenario import Scenario
from bench.servers import Refused


def found() -> dict[str, Scenario[object]]:
    """Every scenario: the `SCENARIO` of each file in `bench/scenarios/`."""
    names = sorted(module.name for module in pkgutil.iter_modules(scenarios.__path__))
    made = [importlib.import_module(f"bench.scenarios.{name}").SCENARIO for name in names]
    return {scenario.name: scenario for scenario in made}


def main(
    name: Annotated[str | None, typer.Argument(help="The scenario; none: list them.")] = None,
    peer: Annotated[
        list[str] | None, typer.Option(help="Only this peer (several times for several).")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=50, help="Turns of each contender at each step.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, max=120, help="Seconds of one turn.")] = 2.0,
    step: Annotated[
        list[str] | None, typer.Option(help="Only this step (several times for several).")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Keep the result in this file too.")] = None,
    strict: Annotated[bool, typer.Option(help="Exit with 1 when a target is missed.")] = False,
) -> None:
    """Measure holdfast beside its peers: the same load, one run, in turn. docs/benchmarks.md says how to read it."""
    console = Console(width=None if sys.stdout.isatty() else 170)
    there = found()
    if name is None:
        for scenario in there.values():
            peers = ", ".join(c.name for c in scenario.contenders[1:] if not c.ceiling)
            console.print(f"[bold]{scenario.name:10}[/] {scenario.about}\n{'':10} [dim]beside {peers}[/]")
        return
    if name not in there:
        raise typer.BadParameter(f"there is no scenario {name!r}; there are {', '.join(there)}")
    scenario = _narrowed(there[name], step, peer)
    say = Console(stderr=True, style="dim").print
    try:
        with ended_cleanly():
            result = run(scenario, peers=peer or (), repeat=repeat, seconds=seconds, say=say)
    except KeyboardInterrupt:
        console.print("interrupted; everything was ended")
        raise typer.Exit(130) from None
    except (ChildFailed, PeerUnavailable, Refused) as error:
        console.print(str(error), style="red", markup=False)
        raise typer.Exit(2) from None
    path = results.keep(result, json)
    table.show(result, console)
    console.print(f"kept in {path}", highlight=False)
    if strict and result.missed():
        raise typer.Exit(1)


def _narrowed(
    scenario: Scenario[object], steps: list[str] | None, peers: list[str] | None
) -> Scenario[object]:
    """The scenario with only the named steps; names that are not there are refused."""
    known_peers = {contender.name for contender in scenario.contenders}
    if unknown := set(peers or ()) - known_peers:
        raise typer.BadParameter(f"no peer {', '.join(unknown)}; there are {', '.join(sorted(known_peers))}")
    if not steps:
        return scenario
    kept = tuple(step for step in scenario.steps if step.key in steps)
    keys = {step.key for step in kept}
    if unknown := set(steps) - keys:
        there = ", ".join(step.key for step in scenario.steps)
        raise typer.BadParameter(f"no step {', '.join(unknown)}; there are {there}")
    targets = tuple(t for t in scenario.targets if t.step in keys and t.than_step in (None, *keys))
    return Scenario(scenario.name, scenario.about, scenario.contenders, kept, targets, scenario.footnotes)


if __name__ == "__main__":
    typer.run(main)
