"""`holdfast app …`: the offline-first client on the command line. Everything is done in the replica first and goes to the
server when it can: turn the server off, go on working, turn it on, watch it settle."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from holdfast.cli import app_books, app_chat, app_library
from holdfast.cli.app_replica import (
    Here,
    client,
    fresh,
    guarded,
    out,
    run,
    settle,
    short,
    standing,
    usual_path,
)
from holdfast.client import Bill, Book, ClientError, Holdfast, Image, Status

app = typer.Typer(
    name="holdfast app",
    help=__doc__,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _app(
    replica: Annotated[
        Path | None,
        typer.Option(
            "--replica",
            metavar="FILE",
            help="The local database.  [default: ~/.local/share/holdfast/app.db]",
            show_default=False,
        ),
    ] = None,
) -> None:
    Here.path = replica or usual_path()


Server = Annotated[str, typer.Option("--server", metavar="HOST:PORT", help="The server; remembered.")]
Mqtt = Annotated[str, typer.Option("--mqtt", metavar="HOST:PORT", help="Its MQTT door, if elsewhere.")]
Ws = Annotated[str, typer.Option("--chat", metavar="HOST:PORT", help="Its chat door, if elsewhere.")]
Name = Annotated[str, typer.Argument(metavar="NAME")]


def _password() -> str:
    if sys.stdin.isatty():
        found: str = typer.prompt("Password", hide_input=True)
        return found
    return sys.stdin.readline().rstrip("\n")


def _enter(name: str, server: str, mqtt: str, ws: str, *, new: bool) -> None:
    password = _password()

    async def work() -> None:
        async with client(server=server, mqtt=mqtt, ws=ws) as here:
            await (here.register if new else here.login)(name, password)
            await here.note(
                **{key: at for key, at in (("server", server), ("mqtt", mqtt), ("chat", ws)) if at}
            )
            out(f"hello, {escape(name)}")
            await settle(here)

    guarded(work)


@app.command()
def register(name: Name, server: Server = "", mqtt: Mqtt = "", chat: Ws = "") -> None:
    """Make an account on the server and log in. The password is asked for, or read from stdin."""
    _enter(name, server, mqtt, chat, new=True)


@app.command()
def login(name: Name, server: Server = "", mqtt: Mqtt = "", chat: Ws = "") -> None:
    """Log in. What was written before the first login is yours from then on."""
    _enter(name, server, mqtt, chat, new=False)


@app.command()
def logout() -> None:
    """End this login. What is in the replica stays."""

    async def work(here: Holdfast) -> None:
        await here.logout()
        out("logged out; the replica stays")

    run(work)


def _shown(status: Status) -> Table:
    table = Table(box=None, show_header=False)
    table.add_row("user", status.user_id or "[yellow]nobody yet[/]")
    table.add_row("server", "[green]online[/]" if status.online else "[yellow]offline[/]")
    table.add_row("live", "changes of others arrive at once" if status.live else "no MQTT connection")
    for name, room in status.rooms.items():
        waits = f"{room.pending} waiting" if room.pending else "everything sent"
        table.add_row(name, waits + (f", [red]{room.parked} refused[/]" if room.parked else ""))
    last = status.last_sync_ms
    when = f"{datetime.fromtimestamp(last / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if last else "never"
    table.add_row("last sync", when)
    if status.last_error and not status.online:
        table.add_row("last error", escape(status.last_error))
    if not status.online and status.next_try_in > 0:
        table.add_row("next try", f"in {status.next_try_in:.0f} s")
    return table


@app.command()
def status(
    watch: Annotated[bool, typer.Option("--watch", help="Go on showing it, until Ctrl-C.")] = False,
) -> None:
    """How things stand: online, what waits, when everything was here last."""

    async def work(here: Holdfast) -> None:
        await fresh(here)
        if not watch:
            out(_shown(await here.status()))
            return
        with Live(_shown(await here.status()), auto_refresh=False) as live:
            while True:
                await asyncio.sleep(0.5)
                live.update(_shown(await here.status()), refresh=True)

    run(work)


@app.command()
def sync() -> None:
    """Send what waits and pull what is new, now; then compare with the server."""

    async def work(here: Holdfast) -> None:
        await here.settled()
        same = await here.verify()
        if same is None:
            out("changes are on their way: not comparable at the moment")
        else:
            out("[green]the same as the server[/]" if same else "[red]differs; being repaired[/]")
        out(standing(await here.status()))

    run(work)


@app.command()
def parked() -> None:
    """What the server refused, and why. Change it, `retry` it or `discard` it."""

    async def work(here: Holdfast) -> None:
        table = Table("id", "what", "why", box=None)
        for row in await here.ledger.parked():
            assert row.refusal is not None
            table.add_row(short(row.id), escape(_said(row)), escape(row.refusal.message))
        for item in await here.library.parked():
            assert item.refusal is not None
            table.add_row(short(item.id), type(item).__name__.lower(), escape(item.refusal.message))
        out(table if table.row_count else "nothing was refused")
        for gone in await here.ledger.lost():
            out(f"[red]lost[/] {gone.kind} ({gone.reason}): {escape(gone.body)}")

    run(work)


def _said(row: Book | Bill | Image) -> str:
    match row:
        case Book():
            return f"book {row.name}"
        case Bill():
            return f"bill {row.money} {row.category}"
        case Image():
            return f"image of {row.size} bytes"


async def _parked_id(here: Holdfast, word: str) -> str:
    rows = [row.id for row in await here.ledger.parked()] + [row.id for row in await here.library.parked()]
    found = [identity for identity in rows if identity.endswith(word)]
    if len(found) != 1:
        raise ClientError(f"{word} names {len(found)} refused rows")
    return found[0]


@app.command()
def retry(word: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Send a refused row again."""

    async def work(here: Holdfast) -> None:
        identity = await _parked_id(here, word)
        in_ledger = any(row.id == identity for row in await here.ledger.parked())
        await (here.ledger if in_ledger else here.library).retry(identity)
        await settle(here)

    run(work)


@app.command()
def discard(word: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Give up a refused change: what the server has stands again."""

    async def work(here: Holdfast) -> None:
        identity = await _parked_id(here, word)
        in_ledger = any(row.id == identity for row in await here.ledger.parked())
        await (here.ledger if in_ledger else here.library).discard(identity)
        await settle(here)

    run(work)


app_books.add_to(app)
app.add_typer(app_library.library, name="library")
app.add_typer(app_chat.chat, name="chat")


def main(arguments: list[str]) -> None:
    app(arguments)
