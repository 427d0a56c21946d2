"""`holdfast serve` as an operator runs it, and its other commands beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.faults.process import ROOT, Server, without_settings
from tests.faults.wire import Answered, Wire

QUICK = ("--set", "auth.argon2_memory_kib=8", "--set", "auth.argon2_passes=1")
PASSWORD = "correct horse"


class Ended(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


def holdfast(
    *arguments: str | Path, stdin: str = "", environment: Mapping[str, str] | None = None, folder: Path = ROOT
) -> Ended:
    """Runs a command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env={**without_settings(os.environ), "PYTHONPATH": str(ROOT), **(environment or {})},
    )
    return Ended(done.returncode, done.stdout, done.stderr)


async def registers(address: str, name: str) -> Answered:
    async with Wire(address) as wire:
        return await wire.post("/auth/register", {"username": name, "password": PASSWORD})


async def logs_in(address: str, name: str) -> int:
    async with Wire(address) as wire:
        return (await wire.post("/auth/login", {"username": name, "password": PASSWORD})).status


def quick_server(folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> Server:
    return Server(folder, *QUICK, *options, environment=environment)
