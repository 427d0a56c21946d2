"""`holdfast serve`: everything, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from holdfast import log
from holdfast.app import App
from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.settings import Settings

STOP_SECONDS = 5.0
RESTARTS = (
    "HOLDFAST_RESTARTS"  # moments of the last starts after a failed disk, so that we give up in the end
)
MOST_RESTARTS = 3
RESTART_WINDOW = 60.0
EXIT_STORE_FAILED = 75


def serve(
    data: Data = None,
    config: Config = None,
    pairs: Set = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Where HTTP listens.  [default: 127.0.0.1:8000]"),
    ] = None,
    mqtt: Annotated[
        str | None,
        typer.Option("--mqtt", metavar="HOST:PORT", help="Where MQTT listens.  [default: 127.0.0.1:1883]"),
    ] = None,
    ws: Annotated[
        str | None,
        typer.Option(
            "--ws", metavar="HOST:PORT", help="Where the chat's WebSocket listens.  [default: 127.0.0.1:9001]"
        ),
    ] = None,
    mqtt_ws: Annotated[
        str | None,
        typer.Option(
            "--mqtt-ws",
            metavar="HOST:PORT",
            help="Where MQTT over WebSocket listens.  [default: 127.0.0.1:8083]",
        ),
    ] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(
            "--ready-file", metavar="FILE", help="Write the doors' addresses here, as JSON, when ready."
        ),
    ] = None,
) -> None:
    """Start the server and keep it up until SIGTERM or Ctrl-C.

    Port 0 picks a free port. When it is ready it prints one line per door with its real address. It stops within
    5 seconds: nothing new is taken, what was begun is finished.
    """
    flags = {"listen.http": http, "listen.mqtt": mqtt, "listen.ws": ws, "listen.mqtt_ws": mqtt_ws}
    loaded = read_settings(data, config, pairs, flags)
    log.configure(loaded.settings.log)
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)
    sys.setswitchinterval(0.001)  # the writer's thread and the loop take turns more often: steadier answers
    failed = uvloop.run(_run(loaded.settings, ready_file))
    if failed is not None:
        _start_over(failed)


async def _run(settings: Settings, ready_file: Path | None) -> str | None:
    """Serves until a signal, or until the store can no longer be trusted: then says why."""
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str | None] = loop.create_future()

    def end(why: str | None = None) -> None:
        if not ending.done():
            ending.set_result(why)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    app = App(settings)
    app.db.on_fatal = end
    await app.start()
    gc.collect()
    gc.freeze()  # what lives as long as the server need not be looked at again
    for name, address in app.addresses.items():
        typer.echo(f"holdfast: {name} at {address}")
    if ready_file is not None:
        app.write_ready_file(ready_file)
    why = await ending
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, os._exit, 1)  # a second signal means: now
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await app.stop()
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
