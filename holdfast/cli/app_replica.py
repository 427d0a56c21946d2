"""What the commands of `holdfast app` share: the replica of whoever runs them, how a command runs, how rows are named."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from holdfast.client import (
    ClientError,
    Event,
    Holdfast,
    LoginNeeded,
    NotHere,
    Offline,
    Status,
    Synced,
    Verified,
    notes,
)

T = TypeVar("T")

SETTLE_SECONDS = 3.0
"""How long a command waits for the server after it has done its work here."""
GLANCES, GLANCE_SECONDS = 150, 0.02
SHORT = 5

console = Console(highlight=False)
out = console.print


class Here:
    """Which replica this command line is about."""

    path = Path()


def usual_path() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "holdfast" / "app.db"


def client(*, chat: bool = False, server: str = "", mqtt: str = "", ws: str = "") -> Holdfast:
    """A client on the replica; where its server is was said at the login."""
    said = notes(Here.path)
    at = server or said.get("server") or "127.0.0.1:8000"
    where: str | bool = (ws or said.get("chat") or True) if chat else False
    return Holdfast(Here.path, server=at, mqtt=mqtt or said.get("mqtt") or None, chat=where)


def run(work: Callable[[Holdfast], Awaitable[T]], *, chat: bool = False) -> T:
    """One command: the replica opened, the work done, then a moment for the server."""

    async def whole() -> T:
        async with client(chat=chat) as app:
            return await work(app)

    return guarded(whole)


def guarded(whole: Callable[[], Awaitable[T]]) -> T:
    async def awaited() -> T:
        return await whole()

    try:
        return asyncio.run(awaited())
    except LoginNeeded as error:
        complain(f"{error} (holdfast app login NAME)")
    except ClientError as error:
        complain(str(error) or type(error).__doc__ or type(error).__name__)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(1)


def complain(sentence: str) -> None:
    print(f"holdfast: {sentence}", file=sys.stderr)  # noqa: T201 - the one sentence for the person


async def settle(app: Holdfast, seconds: float = SETTLE_SECONDS) -> None:
    """Tries to settle for a moment, and says how it stands: offline work is no failure."""
    if app.logged_in:
        try:
            async with asyncio.timeout(seconds):
                await app.settled()
        except (Offline, TimeoutError):
            pass
        except ClientError as error:
            out(f"[yellow]{escape(str(error))}[/]")
    out(standing(await app.status()))


async def fresh(app: Holdfast, room: str = "ledger") -> None:
    """Before something is shown: a moment for what others have written, if there is a server."""
    if not app.logged_in:
        return
    known = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, Synced | Verified) and event.room == room:
            known.set()

    end = app.on_event(hear)
    try:
        for _ in range(GLANCES):
            if known.is_set() or (await app.status()).last_error:
                return
            await asyncio.sleep(GLANCE_SECONDS)
    finally:
        end()


def standing(status: Status) -> str:
    """One line: are we online, does anything wait?"""
    if not status.logged_in:
        state = "[yellow]not logged in[/]"
    elif status.online:
        state = "[green]online[/]"
    else:
        state = "[yellow]offline[/]"
    waits = f", [bold]{status.pending}[/] waiting to be sent" if status.pending else ", everything sent"
    parked = f", [red]{status.parked} refused[/] (holdfast app parked)" if status.parked else ""
    return f"[dim]──[/] {state}{waits if status.logged_in or status.pending else ''}{parked}"


def mark(synced: int, refused: object) -> str:
    if refused is not None:
        return "[red]✗[/]"
    return "[green]●[/]" if synced == 1 else "[yellow]○[/]"


def short(identity: str) -> str:
    """Enough of an id to name it: its end, which differs most."""
    return identity[-SHORT:]


def pick(rows: Iterable[T], word: str, names: Callable[[T], tuple[str, ...]], what: str) -> T:
    """The row whose name is this, or whose id ends like this."""
    found = list(rows)
    exact = [row for row in found if word.casefold() in {name.casefold() for name in names(row)}]
    if len(exact) == 1:
        return exact[0]
    ending = [row for row in found if names(row)[0].endswith(word)]
    if not exact and len(ending) == 1:
        return ending[0]
    if exact or ending:
        raise NotHere(f"{word} names more than one {what}; give more of its id")
    raise NotHere(f"there is no {what} {word} in this replica")
