"""`holdfast`: its commands, and what happens to an error nobody below has answered."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from holdfast import __version__
from holdfast.cli.app import app
from holdfast.cli.broker import broker
from holdfast.cli.keeping import backup, check, migrate, restore
from holdfast.cli.serve import serve
from holdfast.cli.settings import settings
from holdfast.cli.users import token, user
from holdfast.errors import CannotStart, HoldfastError

cli = typer.Typer(
    name="holdfast",
    help="The back end for apps that must work offline: ledgers, libraries, chat and MQTT in one process.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@cli.callback()
def holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


cli.command()(serve)
cli.add_typer(app, name="app")
cli.command()(settings)
cli.add_typer(broker, name="broker")
cli.add_typer(user, name="user")
cli.command()(token)
cli.command()(check)
cli.command()(backup)
cli.command()(restore)
cli.command()(migrate)


def main() -> None:
    """Exit codes: 0 done; 1 the command could not do it; 2 it could not start (or the command line is wrong)."""
    try:
        cli()
    except CannotStart as error:
        print(f"holdfast: {error}", file=sys.stderr)  # noqa: T201 - the one sentence for the person
        sys.exit(2)
    except HoldfastError as error:
        print(f"holdfast: {error.message}", file=sys.stderr)  # noqa: T201 - the one sentence for the person
        sys.exit(1)


if __name__ == "__main__":
    main()
