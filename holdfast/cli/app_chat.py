"""`holdfast app chat …`: messages from a terminal."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.cli.app_replica import fresh, out, pick, run, standing
from holdfast.client import Conversation, Holdfast, Message

chat = typer.Typer(help="Write to people and groups.", no_args_is_help=True)

Whom = Annotated[
    str, typer.Argument(metavar="WHOM", help="A conversation's name, a person's id, or g: and a group's id.")
]


async def _conversation(here: Holdfast, word: str) -> str:
    """An id that is not known yet begins a conversation."""
    if word.startswith(("u:", "g:")):
        return word
    known = await here.chat.conversations()
    if word.isdigit() and not any(each.name == word for each in known):
        return f"u:{word}"
    return pick(known, word, lambda each: (each.id, each.name), "conversation").id


async def _send(here: Holdfast, conversation: str, body: str) -> Message:
    kind, _, other = conversation.partition(":")
    return await (here.chat.send(body, group=other) if kind == "g" else here.chat.send(body, to=other))


def _line(message: Message, here: Holdfast) -> str:
    when = datetime.fromtimestamp(message.ts / 1000).astimezone().strftime("%H:%M")
    who = "you" if message.sender == here.user_id else f"…{message.sender[-4:]}"
    state = "[green]●[/]" if message.is_saved else ("[red]✗[/]" if message.refusal else "[yellow]○[/]")
    words = "[dim]taken back[/]" if message.is_revoked else escape(message.body or "")
    why = f" [red]({message.refusal})[/]" if message.refusal else ""
    return f"{state} [dim]{when}[/] [bold]{who}[/] {words}{why}"


@chat.command("list")
def conversations() -> None:
    """Whom you talk with, the latest first."""

    async def work(here: Holdfast) -> None:
        await fresh(here, "chat")
        table = Table("id", "name", "unread", "last", box=None)
        for each in await here.chat.conversations():
            table.add_row(each.id, escape(each.name), str(each.unread or ""), _last(each))
        out(table if table.row_count else "no messages yet: holdfast app chat send WHOM WORDS")
        out(standing(await here.status()))

    run(work, chat=True)


def _last(conversation: Conversation) -> str:
    return escape((conversation.last.body or "")[:40]) if conversation.last else ""


@chat.command("send")
def send(whom: Whom, words: Annotated[list[str], typer.Argument(metavar="WORDS")]) -> None:
    """Send a message; it is kept until the server has it."""

    async def work(here: Holdfast) -> None:
        conversation = await _conversation(here, whom)
        sent = await _send(here, conversation, " ".join(words))
        for _ in range(30):
            waiting = [
                each
                for each in await here.chat.messages(conversation)
                if each.client_msg_id == sent.client_msg_id
            ]
            if waiting and (waiting[0].is_saved or waiting[0].refusal):
                break
            await asyncio.sleep(0.1)
        for each in waiting:
            out(_line(each, here))
        out(standing(await here.status()))

    run(work, chat=True)


@chat.command("read")
def read(whom: Whom, limit: Annotated[int, typer.Option(help="How many, the last ones.")] = 20) -> None:
    """A conversation's last messages; they count as read."""

    async def work(here: Holdfast) -> None:
        await fresh(here, "chat")
        conversation = await _conversation(here, whom)
        for message in await here.chat.messages(conversation, limit=limit):
            out(_line(message, here))
        await here.chat.mark_read(conversation)
        await asyncio.sleep(0.2)  # so that the receipt leaves with this command, if it can

    run(work, chat=True)


@chat.command("talk")
def talk(whom: Whom) -> None:
    """A conversation, live: what arrives is shown, each line you type is sent. Ctrl-D ends it."""

    async def work(here: Holdfast) -> None:
        conversation = await _conversation(here, whom)
        shown: set[tuple[str, bool, str]] = set()

        async def show() -> None:
            async for messages in here.chat.watch(conversation, limit=20):
                for message in messages:
                    state = (
                        message.client_msg_id or message.server_msg_id,
                        message.is_saved,
                        message.refusal,
                    )
                    if state not in shown:
                        shown.add(state)
                        out(_line(message, here))
                await here.chat.mark_read(conversation)

        showing = asyncio.create_task(show())
        loop = asyncio.get_running_loop()
        try:
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                if words := line.strip():
                    await _send(here, conversation, words)
            await asyncio.sleep(0.5)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    run(work, chat=True)


@chat.command("group")
def group(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    members: Annotated[list[str] | None, typer.Argument(metavar="USER-ID…")] = None,
) -> None:
    """Make a group (asks the server) and show the code with which others join it."""

    async def work(here: Holdfast) -> None:
        made = await here.chat.create_group(name, tuple(members or ()))
        out(f"made [bold]{escape(made.name)}[/] (g:{made.group_id}), code {made.group_code}")

    run(work)


@chat.command("join")
def join(code: Annotated[str, typer.Argument(metavar="CODE")]) -> None:
    """Join a group with its code (asks the server)."""

    async def work(here: Holdfast) -> None:
        joined = await here.chat.join_group(code)
        out(f"joined [bold]{escape(joined.name)}[/] (g:{joined.group_id})")

    run(work)
