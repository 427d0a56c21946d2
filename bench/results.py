"""Results are kept as JSON under `bench/results/` (not in git), one file per run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.figures import Result
from bench.processes import ROOT

FOLDER = ROOT / "bench" / "results"


def keep(result: Result, also: Path | None = None) -> Path:
    stamp = result.started.partition("+")[0].replace(":", "").replace("-", "")
    path = FOLDER / f"{result.scenario}-{stamp}-{result.machine.commit}.json"
    text = msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"
    for target in (path, also):
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
    return path


def read(path: Path) -> Result:
    return msgspec.json.decode(path.read_bytes(), type=Result)
