"""`holdfast app library …`: scores, setlists, and folders of PDFs taken in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from hashlib import file_digest
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from holdfast.cli.app_replica import console, fresh, mark, out, pick, run, settle, short, standing
from holdfast.client import AlreadyHere, Event, Holdfast, InvalidValue, Offline, Score, Transfer

library = typer.Typer(help="Your music library: scores, parts, setlists, PDFs.", no_args_is_help=True)

PDF = b"%PDF-"
ScoreName = Annotated[str, typer.Argument(metavar="SCORE", help="Its title, or the end of its id.")]


async def _score(here: Holdfast, word: str) -> Score:
    return pick(await here.library.scores(), word, lambda score: (score.id, score.title), "score")


@library.command("list")
def scores() -> None:
    """The scores here. ● synced, ○ waits to be sent, ✗ refused."""

    async def work(here: Holdfast) -> None:
        await fresh(here, "library")
        table = Table("", "id", "title", "composer", "parts", box=None)
        for score in await here.library.scores():
            parts = ", ".join(part.instrument for part in await here.library.parts(score.id))
            table.add_row(
                mark(1 if score.state == 0 else 0, score.refusal),
                short(score.id),
                escape(score.title),
                escape(score.composer or ""),
                escape(parts),
            )
        out(table if table.row_count else "no scores yet: holdfast app library add TITLE, or import FOLDER")
        out(standing(await here.status()))

    run(work)


@library.command("add")
def add_score(
    title: Annotated[str, typer.Argument(metavar="TITLE")],
    composer: Annotated[str | None, typer.Option("--composer")] = None,
    bpm: Annotated[int | None, typer.Option("--bpm")] = None,
    pdf: Annotated[Path | None, typer.Option("--pdf", exists=True, dir_okay=False)] = None,
    instrument: Annotated[str, typer.Option("--instrument")] = "Score",
) -> None:
    """Add a score, with a PDF for an instrument if there is one."""

    async def work(here: Holdfast) -> None:
        score = await here.library.add_score(title, composer=composer, bpm=bpm)
        if pdf is not None:
            await here.library.add_part(score.id, instrument, pdf=pdf)
        out(f"added [bold]{escape(score.title)}[/] ({short(score.id)})")
        await settle(here)

    run(work)


@library.command("delete")
def delete_score(word: ScoreName) -> None:
    """Delete a score with its parts, out of every setlist."""

    async def work(here: Holdfast) -> None:
        await here.library.delete_score((await _score(here, word)).id)
        await settle(here)

    run(work)


@library.command("open")
def open_pdf(
    word: ScoreName,
    instrument: Annotated[
        str, typer.Option("--instrument", help="Whose part; the first one if left out.")
    ] = "",
) -> None:
    """Where a part's PDF is on this machine; fetched if it is not here yet."""

    async def work(here: Holdfast) -> None:
        parts = [part for part in await here.library.parts((await _score(here, word)).id) if part.pdf]
        part = (
            pick(parts, instrument, lambda part: (part.id, part.instrument), "part") if instrument else None
        )
        if part is None and not parts:
            raise InvalidValue("score", "has no part with a PDF")
        out(str(await here.library.pdf((part or parts[0]).id)), soft_wrap=True)

    run(work)


@library.command("setlist")
def setlist(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    scores: Annotated[
        list[str] | None, typer.Argument(metavar="SCORE…", help="Scores to add at its end.")
    ] = None,
) -> None:
    """Show a setlist; it is made if it is not there."""

    async def work(here: Holdfast) -> None:
        found = [each for each in await here.library.setlists() if each.name == name]
        which = found[0] if found else await here.library.add_setlist(name)
        for word in scores or ():
            score = await _score(here, word)
            order = len(await here.library.entries(which.id)) + 1
            await here.library.add_to_setlist(which.id, score.id, order=order)
        titles = {score.id: score.title for score in await here.library.scores()}
        for number, entry in enumerate(await here.library.entries(which.id), 1):
            out(f"{number:3}. {escape(titles.get(entry.score_id, '?'))}")
        await settle(here)

    run(work)


@library.command("import")
def import_folder(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False)],
    instrument: Annotated[str, typer.Option("--instrument", help="Whose parts these are.")] = "Score",
) -> None:
    """Take in every PDF of a folder: `Composer - Title.pdf` or `Title.pdf`.

    Each is copied into the replica, then sent. Ctrl-C stops it at any moment; the same command goes on where it was.
    """
    pdfs = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".pdf")

    async def work(here: Holdfast) -> None:
        await _take_in(here, pdfs, instrument)
        await _send(here)

    try:
        run(work)
    except typer.Exit as ended:
        if ended.exit_code == 130:
            out("\nstopped; what was taken in is here, and the same command goes on")
        raise


def _columns() -> Progress:
    return Progress(
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
    )


async def _take_in(here: Holdfast, pdfs: Iterable[Path], instrument: str) -> None:
    taken = known = 0
    refused: list[tuple[Path, str]] = []
    with _columns() as progress:
        for path in progress.track(list(pdfs), description="taking in"):
            try:
                if await _take(here, path, instrument):
                    taken += 1
                else:
                    known += 1
            except (InvalidValue, OSError) as error:
                refused.append((path, str(error)))
    out(f"{taken} taken in, {known} were here already")
    for path, why in refused:
        out(f"[yellow]left out[/] {escape(path.name)}: {escape(why)}")


async def _take(here: Holdfast, path: Path, instrument: str) -> bool:
    """False: its content is here already."""
    digest = await asyncio.to_thread(_md5_of_pdf, path)
    if await here.library.parts_with(digest):
        return False
    composer, dash, title = path.stem.partition(" - ")
    if not dash:
        composer, title = "", path.stem
    try:
        score = await here.library.add_score(title, composer=composer or None)
    except AlreadyHere:
        same = [
            each
            for each in await here.library.scores()
            if (each.title, each.composer or "") == (title, composer)
        ]
        score = same[0]
    names = {part.instrument for part in await here.library.parts(score.id)}
    name, number = instrument, 1
    while name in names:
        number += 1
        name = f"{instrument} {number}"
    await here.library.add_part(score.id, name, pdf=path)
    return True


def _md5_of_pdf(path: Path) -> str:
    with path.open("rb") as file:
        if not file.read(len(PDF)).startswith(PDF):
            raise InvalidValue("pdf", "this is not a PDF")
        file.seek(0)
        return file_digest(file, "md5").hexdigest()


async def _send(here: Holdfast) -> None:
    """Shows the files on their way, if there is one."""
    if not here.logged_in:
        out(standing(await here.status()))
        return
    waiting = await here.library.files.waiting()
    with Progress(
        TextColumn("[progress.description]{task.description}"), BarColumn(), DownloadColumn(), console=console
    ) as progress:
        bar = progress.add_task("sending", total=waiting)
        done: dict[str, int] = {}

        def show(event: Event) -> None:
            if isinstance(event, Transfer):
                done[event.name] = event.done
                progress.update(bar, completed=sum(done.values()))

        end = here.on_event(show)
        try:
            await here.library.refresh()
            progress.update(bar, completed=waiting)
        except Offline:
            progress.console.print("[yellow]offline[/]: the rest goes when the server is there")
        finally:
            end()
    out(standing(await here.status()))
