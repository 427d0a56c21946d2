"""`holdfast user …` and `holdfast token`: accounts, for whoever runs the server. Works beside a running server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from holdfast import log
from holdfast.accounts import queries
from holdfast.accounts.accounts import Accounts
from holdfast.app import ROOMS, open_database
from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.clock import SystemClock
from holdfast.data_folder import DataFolder
from holdfast.metrics import Metrics
from holdfast.settings import Settings
from holdfast.store import Database
from holdfast.store.migrations import of_rooms

T = TypeVar("T")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name (or id).")]

user = typer.Typer(
    help="Add users, list them, change their passwords, disable them, log them out.", no_args_is_help=True
)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[tuple[Database, Accounts]]:
    folder = DataFolder(Path(settings.data))
    folder.create()
    metrics = Metrics()
    db = open_database(settings, folder, metrics)
    await db.start(of_rooms(*ROOMS))
    accounts = Accounts(db, settings.auth, SystemClock(), metrics)
    try:
        await accounts.start()
        yield db, accounts
    finally:
        await accounts.stop()
        await db.stop()


def _run(
    data: Path | None,
    config: Path | None,
    pairs: list[str] | None,
    work: Callable[[Database, Accounts], Awaitable[T]],
) -> T:
    settings = read_settings(data, config, [*(pairs or ()), "log.level=warning"]).settings
    log.configure(settings.log)

    async def run() -> T:
        async with _opened(settings) as (db, accounts):
            return await work(db, accounts)

    return asyncio.run(run())


def _ask_password() -> str:
    """From the terminal, twice; or one line from a pipe."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt="The same again")
    return password


@user.command()
def add(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="May use the admin endpoints.")] = False,
    data: Data = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Add a user, whether or not registration is open. The password is asked for, or read from a pipe."""
    password = _ask_password()

    async def work(_db: Database, accounts: Accounts) -> None:
        made = await accounts.add_user(name, password, is_admin=admin)
        typer.echo(f"{made.name}: user {made.id}{', administrator' if made.is_admin else ''}")

    _run(data, config, pairs, work)


@user.command("list")
def list_users(data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """List every user."""

    async def work(db: Database, _accounts: Accounts) -> None:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for heading in ("id", "name", "", "sessions ended"):
            table.add_column(heading)
        after = 0
        while page := await db.read(queries.users_page, after, 500):
            for one in page:
                marks = [
                    word for word, is_so in (("admin", one.is_admin), ("disabled", one.disabled)) if is_so
                ]
                table.add_row(str(one.id), one.name, ", ".join(marks), str(one.sv))
            after = page[-1].id
        Console().print(table)

    _run(data, config, pairs, work)


@user.command()
def passwd(name: Name, data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """Give a user a new password; every session of the user ends."""
    password = _ask_password()

    async def work(_db: Database, accounts: Accounts) -> None:
        await accounts.set_password(await accounts.user_named(name), password)
        typer.echo(f"{name}: new password set, every session ended")

    _run(data, config, pairs, work)


@user.command()
def disable(name: Name, data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """Keep a user out from now on; every session of the user ends."""
    _set_disabled(name, data, config, pairs, disabled=True)


@user.command()
def enable(name: Name, data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """Let a disabled user in again."""
    _set_disabled(name, data, config, pairs, disabled=False)


def _set_disabled(
    name: str, data: Path | None, config: Path | None, pairs: list[str] | None, *, disabled: bool
) -> None:
    async def work(_db: Database, accounts: Accounts) -> None:
        await accounts.set_disabled(await accounts.user_named(name), disabled=disabled)
        typer.echo(f"{name}: {'disabled, every session ended' if disabled else 'enabled'}")

    _run(data, config, pairs, work)


@user.command()
def logout(name: Name, data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """End every session of a user, on all devices."""

    async def work(_db: Database, accounts: Accounts) -> None:
        await accounts.end_sessions(await accounts.user_named(name))
        typer.echo(f"{name}: every session ended")

    _run(data, config, pairs, work)


def token(name: Name, data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """Print an access token for a user, for curl and MQTT clients. It works for auth.access_seconds."""

    async def work(_db: Database, accounts: Accounts) -> None:
        typer.echo(await accounts.access_token_for(await accounts.user_named(name)))

    _run(data, config, pairs, work)
