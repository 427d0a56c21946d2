"""The server as an operator has it: a process with a data folder and a ready file, that is started and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.faults.operations import Doors

ROOT = Path(__file__).parents[2]  # the tree under test is the one that runs
HOLDFAST = (sys.executable, "-m", "holdfast", "serve")

LOOK_EVERY = 0.002
START_PATIENCE = 30.0
STOP_PATIENCE = 5.0  # the house promises to be gone by then
LAST_WORDS = 3_000


FREE_PORTS = {
    f"HOLDFAST_LISTEN_{door}": "127.0.0.1:0" for door in ("MQTT", "MQTT_WS", "WS")
}  # HTTP's is given as an option


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """A server takes every HOLDFAST_* for a setting: neither ours nor the developer's are meant for it. Its doors
    open on free ports: others may be running."""
    return FREE_PORTS | {
        name: value for name, value in environment.items() if not name.startswith("HOLDFAST_")
    }


class DidNotStart(AssertionError):
    pass


class Server:
    """`command` takes the options of `holdfast serve`. Every start is on the same folder, on a free port.

    `door` is the option that names the first door."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        command: Sequence[str] = HOLDFAST,
        environment: Mapping[str, str] | None = None,
        door: str = "--http",
    ) -> None:
        self.folder = folder
        self._command = command
        self._options = options
        self._door = door
        self._environment = environment or {}
        self.ready_file = folder.with_name(folder.name + ".ready")
        self._log = folder.with_name(folder.name + ".log")
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    # -- start

    def spawn(self, *more: str) -> None:
        """Starts the process and waits for nothing."""
        assert not self.running
        self.ready_file.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._command,
                    *("--data", str(self.folder), self._door, "127.0.0.1:0"),
                    *("--ready-file", str(self.ready_file)),
                    *self._options,
                    *more,
                ],
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**without_settings(os.environ), **self._environment},
            )
        self.starts += 1

    async def start(self, *more: str) -> Doors:
        self.spawn(*more)
        return await self.ready()

    async def opening(self) -> None:
        """Until the process has taken the folder: from here on it opens, recovers and migrates the store."""
        assert self._process is not None
        lock = self.folder / "lock"
        mine = f"{self._process.pid}\n"
        await self._until(lambda: lock.exists() and lock.read_text() == mine)

    async def ready(self) -> Doors:
        await self._until(self.ready_file.exists)
        found: dict[str, str] = json.loads(self.ready_file.read_text())
        return found

    async def restarted(self, before: Doors) -> None:
        """Until the same process, which was ready as `before`, has begun anew."""
        text = json.dumps(before)
        await self._until(lambda: not self.ready_file.exists() or self.ready_file.read_text().strip() != text)

    async def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_PATIENCE
        while not done():
            if not self.running:
                raise DidNotStart(
                    f"the server ended with {self.exit_code} at its start:\n{self.last_words()}"
                )
            if time.monotonic() > deadline:
                raise DidNotStart(f"the server is not ready after {START_PATIENCE:g} s:\n{self.last_words()}")
            await asyncio.sleep(LOOK_EVERY)

    # -- end

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def terminate(self, number: int = signal.SIGTERM) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def gone(self) -> int:
        """Until the process has ended after `terminate`; its exit code. Raises if it takes longer than promised."""
        assert self._process is not None
        deadline = time.monotonic() + STOP_PATIENCE
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"the server did not stop within {STOP_PATIENCE:g} s")
            await asyncio.sleep(LOOK_EVERY)
        return self._process.returncode

    def end(self) -> None:
        """Whatever a test left running."""
        if self.running:
            self.kill()

    # -- what it says

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def last_words(self) -> str:
        return self._log.read_text("utf-8", "replace")[-LAST_WORDS:] if self._log.exists() else ""
