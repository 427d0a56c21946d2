"""mosquitto_sub and mosquitto_pub, as a person runs them."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
from types import TracebackType
from typing import Self

from tests.conftest import missing

SECONDS = 30


class Tools:
    """For one broker. `version` as the tools spell it: mqttv31, mqttv311, mqttv5."""

    def __init__(self, address: str, version: str = "mqttv311") -> None:
        host, _, port = address.rpartition(":")
        self._where = ("-h", host, "-p", port, "-V", version)
        if shutil.which("mosquitto_sub") is None:
            missing("mosquitto_sub")

    async def publish(self, topic: str, message: str, *more: str) -> None:
        await self._run("mosquitto_pub", "-t", topic, "-m", message, *more)

    async def subscribe(self, *more: str) -> list[str]:
        """To its end; what it printed. Give it `-E` or `-C count`, so that it ends."""
        return (await self._run("mosquitto_sub", "-W", str(SECONDS), *more)).splitlines()

    def staying(self, *more: str) -> Staying:
        return Staying(["mosquitto_sub", *self._where, *more])

    async def _run(self, program: str, *more: str) -> str:
        done = await asyncio.to_thread(
            subprocess.run,
            [program, *self._where, *more],
            capture_output=True,
            text=True,
            timeout=SECONDS * 2,
            check=False,
        )
        assert done.returncode == 0, f"{program} {more}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout


class Staying:
    """A mosquitto_sub that goes on until Ctrl-C."""

    def __init__(self, command: list[str]) -> None:
        self._command = command

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(*self._command, stdout=subprocess.PIPE)
        return self

    async def line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(SECONDS):
            return (await self._process.stdout.readline()).decode().rstrip("\n")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        await self._process.wait()
