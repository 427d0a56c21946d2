"""The options that every command shares, and how they become settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from holdfast.errors import CannotStart
from holdfast.settings_sources import Loaded, load

Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="The data folder.  [default: ./holdfast-data]", show_default=False
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="HOLDFAST_CONFIG",
        help="A TOML file with settings.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any setting, for instance --set auth.registration=closed; may be given several times.",
        show_default=False,
    ),
]


def read_settings(
    data: Path | None,
    config: Path | None,
    pairs: list[str] | None,
    flags: Mapping[str, str | None] | None = None,
) -> Loaded:
    """Settings from the command line over the environment over the file over the defaults."""
    given: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise CannotStart(f"--set {pair}: write it as --set NAME=VALUE")
        given[name.strip()] = value
    if data is not None:
        given["data"] = str(data)
    given.update({name: value for name, value in (flags or {}).items() if value is not None})
    return load(given, os.environ, config)
