"""A server as a process: up until SIGTERM or Ctrl-C, and started over when its disk has failed it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import typer
import uvloop

from holdfast.addresses import write_ready_file
from holdfast.store import Database

STOP_SECONDS = 5.0
RESTARTS = (
    "HOLDFAST_RESTARTS"  # moments of the last starts after a failed disk, so that we give up in the end
)
MOST_RESTARTS = 3
RESTART_WINDOW = 60.0
EXIT_STORE_FAILED = 75


class Server(Protocol):
    @property
    def db(self) -> Database: ...
    @property
    def addresses(self) -> Mapping[str, str]: ...

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def read_again(self) -> None:
        """SIGHUP: takes what the operator changed in files that are read at the start."""


def keep_up(build: Callable[[], Server], ready_file: Path | None) -> None:
    """Port 0 picks a free port. Prints one line per door, and writes their addresses to `ready_file`."""
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)
    sys.setswitchinterval(0.001)  # the writer's thread and the loop take turns more often: steadier answers
    failed = uvloop.run(_run(build, ready_file))
    if failed is not None:
        _start_over(failed)


async def _run(build: Callable[[], Server], ready_file: Path | None) -> str | None:
    """Serves until a signal, or until the store can no longer be trusted: then says why."""
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str | None] = loop.create_future()

    def end(why: str | None = None) -> None:
        if not ending.done():
            ending.set_result(why)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    server = build()
    server.db.on_fatal = end
    await server.start()
    loop.add_signal_handler(signal.SIGHUP, server.read_again)
    gc.collect()
    gc.freeze()  # what lives as long as the server need not be looked at again
    for name, address in server.addresses.items():
        typer.echo(f"holdfast: {name} at {address}")
    if ready_file is not None:
        write_ready_file(ready_file, server.addresses)
    why = await ending
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, os._exit, 1)  # a second signal means: now
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await server.stop()
    except TimeoutError:
        typer.echo("holdfast: did not stop in time; what was acknowledged is on the disk", err=True)
        os._exit(0 if why is None else EXIT_STORE_FAILED)
    return why


def _start_over(why: str) -> None:
    """The disk failed us: only what a fresh start reads from it can be trusted. Gives up after a few tries."""
    now = time.time()
    recent = [
        then for then in map(float, os.environ.get(RESTARTS, "").split()) if now - then < RESTART_WINDOW
    ]
    typer.echo(f"holdfast: {why}", err=True)
    if len(recent) >= MOST_RESTARTS:
        typer.echo("holdfast: the disk keeps failing; giving up (look at the system's log)", err=True)
        sys.exit(EXIT_STORE_FAILED)
    os.environ[RESTARTS] = " ".join(map(str, [*recent, now]))
    os.execv(sys.executable, [sys.executable, "-m", "holdfast", *sys.argv[1:]])  # noqa: S606 - ourselves again
