"""`holdfast serve`: everything, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast import log
from holdfast.app import App
from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.cli.running import keep_up


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
    keep_up(lambda: App(loaded.settings), ready_file)
