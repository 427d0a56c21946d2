"""A server's processes as the kernel sees them: memory and processor time of a process and all its children."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def members(pid: int) -> list[int]:
    """`pid` and everything below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = [pid]
    for member in found:  # grows while it is read
        found.extend(children.get(member, ()))
    return found


def resident_bytes(pid: int) -> int:
    """Resident memory of the tree; what forked processes share counts once (their proportional size)."""
    tree = members(pid)
    if len(tree) == 1:
        return _kib(pid, "status", "VmRSS") * 1024
    return sum(_kib(member, "smaps_rollup", "Pss") for member in tree) * 1024


def peak_bytes(pid: int) -> int:
    """The most that a process (without its children) has had resident so far."""
    return _kib(pid, "status", "VmHWM") * 1024


def forget_peak(pid: int) -> None:
    """`peak_bytes` begins anew from here."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """Processor time that the tree has used, in the kernel and outside."""
    total = 0
    for member in members(pid):
        if (stat := _stat(member)) is not None:
            total += int(stat[11]) + int(stat[12])
    return total / _TICKS


def _stat(pid: int) -> list[str] | None:
    """The fields after the name, which may hold spaces and brackets: state, parent, … (see proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _kib(pid: int, file: str, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)
