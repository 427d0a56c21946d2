"""`holdfast settings`: every setting with its value, where it came from and what it means."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.settings_sources import Loaded, Row, rows


def settings(
    data: Data = None,
    config: Config = None,
    pairs: Set = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for programs.")] = False,
) -> None:
    """Print every setting: its value, where it came from, what it means.

    Flags win over the environment (HOLDFAST_STORE_URL for store.url), that over the file given with --config,
    that over the default. Secrets are not shown.
    """
    loaded = read_settings(data, config, pairs)
    if as_json:
        found = {
            row.name: {"value": _shown(row, loaded), "from": loaded.origins[row.name], "help": row.help}
            for row in rows()
        }
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("setting", "value", "from", "what it means"):
        table.add_column(heading, no_wrap=heading == "setting", overflow="fold")
    for row in rows():
        origin = loaded.origins[row.name]
        style = "dim" if origin == "default" else "bold"
        table.add_row(row.name, str(_shown(row, loaded)), origin, row.help, style=style)
    Console().print(table)


def _shown(row: Row, loaded: Loaded) -> object:
    value = loaded.value(row)
    if row.secret and value:
        return "(secret)"
    return list(value) if isinstance(value, tuple) else value
