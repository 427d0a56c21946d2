"""`holdfast app book|bill …`: shared account books from a terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from holdfast.cli.app_replica import fresh, mark, out, pick, run, settle, short, standing
from holdfast.client import Bill, Book, Holdfast, Status

BookName = Annotated[str, typer.Argument(metavar="BOOK", help="Its name, or the end of its id.")]
BillId = Annotated[str, typer.Argument(metavar="ID", help="The end of its id, as `bills` shows it.")]

book = typer.Typer(help="Make, share and leave account books.", no_args_is_help=True)
bill = typer.Typer(help="Write, change and delete bills.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    app.command("books")(books)
    app.command("bills")(bills)
    app.command("watch")(watch)
    app.command("join")(join)
    app.add_typer(book, name="book")
    app.add_typer(bill, name="bill")


async def named(here: Holdfast, word: str) -> Book:
    return pick(await here.ledger.books(), word, lambda book: (book.id, book.name), "book")


async def _bill(here: Holdfast, word: str) -> Bill:
    found: list[Bill] = []
    for each in await here.ledger.books():
        found += await here.ledger.bills(each.id)
    return pick(found, word, lambda bill: (bill.id,), "bill")


def books() -> None:
    """The books here: those you made, and those you joined."""

    async def work(here: Holdfast) -> None:
        await fresh(here)
        table = Table("", "id", "name", "members", "yours", box=None)
        for each in await here.ledger.books():
            yours = "yes" if here.ledger.can_edit(each) else ""
            members = str(len(each.members))
            table.add_row(mark(each.synced, each.refusal), short(each.id), escape(each.name), members, yours)
        out(table if table.row_count else "no books yet: holdfast app book add NAME")
        out(standing(await here.status()))

    run(work)


def _bill_table(rows: list[Bill]) -> Table:
    table = Table("", "id", "date", "money", "category", "remark", box=None)
    for row in rows:
        table.add_row(
            mark(row.synced, row.refusal),
            short(row.id),
            row.time[:10],
            str(row.money),
            escape(row.category),
            escape(row.remark or ""),
        )
    return table


def bills(name: BookName, limit: Annotated[int, typer.Option(help="How many, newest first.")] = 20) -> None:
    """The bills of a book, newest first. ● synced, ○ waits to be sent, ✗ refused."""

    async def work(here: Holdfast) -> None:
        await fresh(here)
        which = await named(here, name)
        out(_bill_table(await here.ledger.bills(which.id, limit=limit)))
        out(standing(await here.status()))

    run(work)


def watch(name: BookName) -> None:
    """A book, live: every change shows at once, whoever made it. Ctrl-C ends it."""

    async def work(here: Holdfast) -> None:
        which = await named(here, name)

        def screen(rows: list[Bill], status: Status) -> Table:
            grid = Table.grid()
            grid.add_row(_bill_table(rows))
            grid.add_row(standing(status) + ("" if status.live else "  [dim](no live connection)[/]"))
            return grid

        shown: list[Bill] = []

        async def follow() -> None:
            async for rows in here.ledger.watch(which.id):
                shown[:] = rows[:20]
                live.update(screen(shown, await here.status()), refresh=True)

        with Live(auto_refresh=False) as live:
            following = asyncio.create_task(follow())
            while not following.done():
                await asyncio.wait({following}, timeout=1)
                live.update(screen(shown, await here.status()), refresh=True)

    run(work)


def join(code: Annotated[str, typer.Argument(metavar="CODE")]) -> None:
    """Join a book with the code that its maker gave you."""

    async def work(here: Holdfast) -> None:
        joined = await here.ledger.join(code)
        out(f"joined [bold]{escape(joined.name)}[/], {len(await here.ledger.bills(joined.id))} bills")

    run(work)


@book.command("add")
def add_book(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Make a book."""

    async def work(here: Holdfast) -> None:
        made = await here.ledger.add_book(name)
        out(f"made [bold]{escape(made.name)}[/] ({short(made.id)})")
        await settle(here)

    run(work)


@book.command("rename")
def rename_book(name: BookName, to: Annotated[str, typer.Argument(metavar="NEW-NAME")]) -> None:
    """Give a book of yours another name."""

    async def work(here: Holdfast) -> None:
        await here.ledger.change_book((await named(here, name)).id, name=to)
        await settle(here)

    run(work)


@book.command("delete")
def delete_book(name: BookName) -> None:
    """Delete a book of yours, with everything in it, for all its members."""

    async def work(here: Holdfast) -> None:
        await here.ledger.delete_book((await named(here, name)).id)
        await settle(here)

    run(work)


@book.command("share")
def share_book(name: BookName) -> None:
    """A code with which others join (asks the server)."""

    async def work(here: Holdfast) -> None:
        code = await here.ledger.share((await named(here, name)).id)
        out(f"code [bold]{code.code}[/], good until {code.expires_at}")

    run(work)


@book.command("leave")
def leave_book(name: BookName) -> None:
    """Leave a book that somebody else made (asks the server)."""

    async def work(here: Holdfast) -> None:
        await here.ledger.leave((await named(here, name)).id)

    run(work)


Category = Annotated[str, typer.Argument(metavar="CATEGORY")]
Remark = Annotated[str | None, typer.Option("--remark", help="A remark.")]
On = Annotated[str | None, typer.Option("--on", metavar="DATE", help="2026-02-18; today if left out.")]


@bill.command("add", context_settings={"ignore_unknown_options": True})
def add_bill(
    name: BookName,
    money: Annotated[str, typer.Argument(metavar="MONEY")],
    category: Category,
    remark: Remark = None,
    on: On = None,
    photo: Annotated[
        Path | None, typer.Option("--photo", exists=True, dir_okay=False, help="A picture of the receipt.")
    ] = None,
) -> None:
    """Write a bill. It is here at once; it goes to the server when it can."""

    async def work(here: Holdfast) -> None:
        which = await named(here, name)
        made = await here.ledger.add_bill(which.id, money, category, remark=remark, time=on)
        if photo is not None:
            await here.ledger.add_image(made.id, photo)
        out(f"wrote {made.money} {escape(made.category)} ({short(made.id)}) into {escape(which.name)}")
        await settle(here)

    run(work)


@bill.command("change")
def change_bill(
    word: BillId,
    money: Annotated[str | None, typer.Option("--money")] = None,
    category: Annotated[str | None, typer.Option("--category")] = None,
    remark: Remark = None,
    on: On = None,
) -> None:
    """Change a bill of yours."""

    async def work(here: Holdfast) -> None:
        which = await _bill(here, word)
        changes: dict[str, object] = {"money": money, "category": category, "remark": remark, "time": on}
        given = {name: value for name, value in changes.items() if value is not None}
        changed = await here.ledger.change_bill(which.id, **given)  # type: ignore[arg-type]
        out(f"now {changed.money} {escape(changed.category)}")
        await settle(here)

    run(work)


@bill.command("delete")
def delete_bill(word: BillId) -> None:
    """Delete a bill of yours."""

    async def work(here: Holdfast) -> None:
        await here.ledger.delete_bill((await _bill(here, word)).id)
        await settle(here)

    run(work)
