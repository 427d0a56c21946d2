"""Carries a scenario out: starts the contenders, takes turns, ends everything, hands the figures over.

Every contender runs for the whole of the run (an idle server costs the others nothing), each step goes through
them in turn, and every loop here is bounded by the number of steps, turns and contenders.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench import figures, machine
from bench.figures import Result, Turns
from bench.peers.install import PeerUnavailable
from bench.processes import WORK, ChildFailed
from bench.scenario import Contender, Scenario, Step

WARM_UP_SECONDS = 0.5
PACKAGES = ("holdfast", "granian", "litestar", "msgspec", "uvloop", "apsw", "psycopg")

Say = Callable[[str], None]


@contextmanager
def temporary_folder(scenario: str) -> Iterator[Path]:
    """On the disk that holds the project, never in memory; removed whatever happens."""
    folder = WORK / "tmp" / f"{scenario}-{os.getpid()}"
    folder.mkdir(parents=True)
    folder.chmod(0o755)  # a database server may have to run as a user of its own
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(
    scenario: Scenario[object], *, peers: Collection[str], repeat: int, seconds: float, say: Say
) -> Result:
    """`peers`: who is measured beside us; empty: all."""
    started = datetime.now(UTC)
    measured: dict[tuple[str, str], Turns] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(scenario.name))
        facts = machine.facts(folder, PACKAGES)
        ours, *others = scenario.contenders
        wanted = [ours, *(c for c in others if not peers or c.name in peers or c.ceiling)]
        wanted = [c for c in wanted if any(step.takes(c.name) for step in scenario.steps)]
        handles: dict[str, object] = {}
        for contender in wanted:
            say(f"starting {contender.name}")
            handle = _started(contender, folder / contender.name, stack, absent)
            if handle is not None:
                handles[contender.name] = handle
        for number, step in enumerate(scenario.steps, start=1):
            say(f"{number}/{len(scenario.steps)} {step.title}")
            _measure(step, handles, step.repeat or repeat, seconds, measured)
        fsync_after = machine.fsync(folder)
    return Result(
        scenario.name,
        scenario.about,
        started.isoformat(timespec="seconds"),
        seconds,
        repeat,
        facts,
        fsync_after,
        os.getloadavg()[0],
        figures.rows(scenario, measured),
        absent,
        scenario.footnotes,
        tuple(contender.name for contender in scenario.contenders if contender.ceiling),
    )


def _started(
    contender: Contender[object], folder: Path, stack: ExitStack, absent: dict[str, str]
) -> object | None:
    """What `start` gives; a peer that cannot be had here is named and left out, ours must be there."""
    folder.mkdir()
    try:
        return stack.enter_context(contender.start(folder))
    except PeerUnavailable as error:
        absent[contender.name] = str(error)
        return None


def _measure(
    step: Step[object],
    handles: dict[str, object],
    repeat: int,
    seconds: float,
    measured: dict[tuple[str, str], Turns],
) -> None:
    taking_part = {name: handle for name, handle in handles.items() if step.takes(name)}
    for handle in taking_part.values():
        if step.prepare is not None:
            step.prepare(handle)
        if step.warm_up:
            step.run(handle, min(seconds, WARM_UP_SECONDS))
    for _turn in range(repeat):
        for name, handle in taking_part.items():
            try:
                values = step.run(handle, seconds)
            except ChildFailed as error:
                raise ChildFailed(f"{step.title}, {name}: {error}") from error
            for measure in step.measures:
                if measure.key in values:  # a contender may have nothing to say to a measure
                    turns = measured.setdefault((step.key, measure.key), {})
                    turns.setdefault(name, []).append(values[measure.key])
        time.sleep(0.05)  # sockets that were closed last are gone from the queue
