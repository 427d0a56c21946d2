"""What the figures were measured on: processor, load, versions, commit, and what one fsync costs here."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import Struct

from bench.processes import ROOT

FSYNCS = 200
PAGE = bytes(4_096)


class Fsync(Struct, frozen=True):
    """Milliseconds to append 4 KiB to a file and have the disk confirm it."""

    p50_ms: float
    p99_ms: float


class Machine(Struct, frozen=True):
    cpu: str
    cores: int
    memory_mib: int
    kernel: str
    filesystem: str
    load_before: float
    python: str
    versions: dict[str, str]
    commit: str
    fsync: Fsync


def facts(folder: Path, packages: Iterable[str]) -> Machine:
    return Machine(
        cpu=_field("/proc/cpuinfo", "model name") or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_mib=int((_field("/proc/meminfo", "MemTotal") or "0").split()[0]) // 1024,
        kernel=platform.release().partition("-")[0],
        filesystem=filesystem(folder),
        load_before=os.getloadavg()[0],
        python=platform.python_version(),
        versions={name: found for name in packages if (found := _version(name))},
        commit=commit(),
        fsync=fsync(folder),
    )


def fsync(folder: Path) -> Fsync:
    path = folder / "fsync"
    took = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            started = time.perf_counter()
            file.write(PAGE)
            os.fsync(file.fileno())
            took.append((time.perf_counter() - started) * 1000)
    path.unlink()
    took.sort()
    return Fsync(took[len(took) // 2], took[len(took) * 99 // 100])


def filesystem(folder: Path) -> str:
    """The kind of filesystem that holds `folder`: a figure from memory is none."""
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        inside = point == "/" or folder.is_relative_to(point)
        if inside and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=10
        )
        return done.stdout.strip()

    name = git("rev-parse", "--short=10", "HEAD") or "unknown"
    return name + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def _field(path: str, name: str) -> str | None:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
