"""The order of turns, and that nothing is left behind, whatever happens. Real processes, real folders."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from bench import processes, run, table
from bench.figures import Result
from bench.peers import install
from bench.peers.install import PeerUnavailable
from bench.processes import Child, ChildFailed, running, talker
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Values

RATE = Measure("rate", "1/s")
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (run, install):
        monkeypatch.setattr(module, "WORK", tmp_path / "work")
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.3)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def sleeper(folder: Path) -> Iterator[Child]:
    with running(Child([sys.executable, "-c", "import time; time.sleep(60)"], folder / "log")) as child:
        yield child


def absent(_folder: Path) -> AbstractContextManager[Child]:
    raise PeerUnavailable("it cannot be had here")


def scenario(run_step: object, *peers: Contender[Child]) -> Scenario[Child]:
    step = Step[Child]("a", "a step", (RATE,), run_step, warm_up=False)  # type: ignore[arg-type]
    return Scenario("test", "a test", (Contender(OURS, sleeper), *peers), (step,))


def measure(made: Scenario[Child], repeat: int = 3) -> Result:
    return run.run(made, peers=(), repeat=repeat, seconds=0.1, say=lambda _line: None)  # type: ignore[arg-type]


def test_contenders_take_turns_rather_than_one_after_the_other() -> None:
    order: list[int] = []

    def note(child: Child, _seconds: float) -> Values:
        order.append(child.pid)
        return {"rate": 1.0}

    measure(scenario(note, Contender("peer", sleeper)))
    first, second = order[:2]
    assert first != second
    assert order == [first, second] * 3


def test_a_run_that_is_interrupted_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupted(child: Child, _seconds: float) -> Values:
        pids.append(child.pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(scenario(interrupted, Contender("peer", sleeper)))
    assert pids
    assert not any(map(is_alive, pids))
    assert list((tmp_path / "work" / "tmp").iterdir()) == []


def test_sigterm_unwinds_once_and_a_second_one_does_not_disturb_the_unwinding() -> None:
    unwound = []

    def interrupted() -> None:
        with processes.ended_cleanly():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(5)
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                unwound.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert unwound


def test_a_process_that_ignores_sigterm_ends_with_its_children(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", STUBBORN], tmp_path / "log")
    grandchild = child.wait_until(lambda: int((tmp_path / "log").read_text() or 0) or None, 10)
    assert is_alive(grandchild)
    child.stop()
    assert not is_alive(child.pid)
    deadline = time.monotonic() + 5
    while is_alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(grandchild)


def test_a_peer_that_cannot_be_had_is_named_and_left_out() -> None:
    result = measure(scenario(lambda _child, _seconds: {"rate": 1.0}, Contender("peer", absent)))
    assert result.absent == {"peer": "it cannot be had here"}
    assert [figure.contender for row in result.rows for figure in row.figures] == [OURS]


def test_a_package_that_does_not_exist_makes_its_peer_unavailable(tmp_path: Path) -> None:
    with pytest.raises(PeerUnavailable, match="failed"):
        install.pypi("nothing", str(tmp_path / "not-there.whl"))


def test_a_program_that_dies_or_is_silent_says_what_it_wrote_last(tmp_path: Path) -> None:
    with (
        talker("bench.load.trivial_server", tmp_path / "log", "not-a-port") as dead,
        pytest.raises(ChildFailed, match="invalid literal"),
    ):
        dead.ask({}, int, 10)


def test_who_reaches_the_loads_ceiling_is_pointed_out() -> None:
    rates = iter([90.0, 50.0, 100.0])
    made = scenario(
        lambda _child, _seconds: {"rate": next(rates)},
        Contender("peer", sleeper),
        Contender("trivial", sleeper, ceiling=True),
    )
    said = table.notes(measure(made, repeat=1))
    assert [line for line in said if "holdfast is at 90%" in line]
    assert not [line for line in said if "peer is at" in line]


def test_figures_from_a_busy_machine_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (99.0, 99.0, 99.0))
    said = table.notes(measure(scenario(lambda _child, _seconds: {"rate": 1.0})))
    assert [line for line in said if "the machine was busy" in line]
