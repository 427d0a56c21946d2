"""`holdfast check`, `backup`, `restore`, `migrate`: what the keeping room does, in words and with a bar."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from holdfast import log
from holdfast.app import ROOMS, open_database
from holdfast.cli.options import Config, Data, Set, read_settings
from holdfast.clock import SystemClock, rfc3339
from holdfast.keeping import backup as backups
from holdfast.keeping import check as checks
from holdfast.keeping import migrate as migrating
from holdfast.keeping import restore as restoring
from holdfast.keeping.manifest import Manifest
from holdfast.keeping.places import Kept, kept_by
from holdfast.keeping.progress import Progress as Watched
from holdfast.keeping.progress import Unwatched
from holdfast.metrics import Metrics
from holdfast.store.migrations import of_rooms

File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup: one tar file.", show_default=False)]


class _Bar:
    """One line on the terminal for the stretch of work that is under way."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, what: str, total: int | None = None) -> None:
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total)

    def advance(self, steps: int) -> None:
        if self._task is not None:
            self._progress.advance(self._task, steps)


@contextmanager
def _watched() -> Iterator[Watched]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Unwatched()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress)


def _kept(data: Path | None, config: Path | None, pairs: list[str] | None) -> Kept:
    settings = read_settings(data, config, [*(pairs or ()), "log.level=warning"]).settings
    log.configure(settings.log)
    return kept_by(settings)


def check(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every page of the database and every file.")
    ] = False,
    data: Data = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Prove that the store and the files are as they must be; print what is wrong.

    Works beside a running server. Exit code 0: all is well; 1: something is wrong, each in one line.
    """
    if _is_sound(_kept(data, config, pairs), deep=deep):
        return
    raise typer.Exit(1)


def _is_sound(kept: Kept, *, deep: bool) -> bool:
    seen, problems = checks.Seen(), 0
    with _watched() as progress:
        for problem in checks.check(kept, of_rooms(*ROOMS), SystemClock(), progress, seen, deep=deep):
            typer.echo(str(problem))
            problems += 1
    if problems:
        typer.echo(f"holdfast: {problems} {'problem' if problems == 1 else 'problems'}", err=True)
        return False
    read = ", every page and every file read" if deep else ""
    typer.echo(
        f"all is well: {seen.rows} rows in {seen.tables} tables, {seen.files} files"
        f" ({decimal(seen.file_bytes)}){read}"
    )
    return True


def backup(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it is there.")] = False,
    data: Data = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Copy everything into one file, also while the server runs: rows as of one moment, and their files.

    The file is read back before it gets its name. It holds password hashes and the secret of the tokens: keep it safe.
    """
    kept = _kept(data, config, pairs)
    with _watched() as progress:
        manifest = backups.backup(kept, of_rooms(*ROOMS), file, SystemClock(), progress, overwrite=force)
    typer.echo(f"{file}: {_told(manifest)}, {decimal(file.stat().st_size)}")
    if manifest.damaged:
        for sha256 in manifest.damaged:
            typer.echo(
                f"this file was missing or damaged already, and is not in the backup: {sha256}", err=True
            )
        raise typer.Exit(1)


def restore(
    file: File,
    force: Annotated[
        bool, typer.Option("--force", help="Move what is in the data folder aside first (SQLite only).")
    ] = False,
    data: Data = None,
    config: Config = None,
    pairs: Set = None,
) -> None:
    """Fill an empty data folder, or an empty PostgreSQL database, from a backup of either.

    The backup is verified before anything is touched. Clients that follow a feed start over, so that nothing they saw
    after the backup is missed silently. Afterwards everything is checked.
    """
    kept = _kept(data, config, pairs)
    with _watched() as progress:
        manifest = restoring.restore(kept, of_rooms(*ROOMS), file, SystemClock(), progress, replace=force)
    typer.echo(f"restored what there was at {rfc3339(manifest.made_ms)}: {_told(manifest)}")
    if not _is_sound(kept, deep=False):
        raise typer.Exit(1)


def migrate(data: Data = None, config: Config = None, pairs: Set = None) -> None:
    """Bring the store up to date without serving; say what was done. (`serve` does it too, at its start.)"""
    kept = _kept(data, config, pairs)
    db = open_database(kept.settings, kept.folder, Metrics())
    applied = asyncio.run(migrating.migrate(kept, db, of_rooms(*ROOMS)))
    for migration in applied:
        typer.echo(f"applied {migration}")
    if not applied:
        typer.echo("nothing to do: the store is up to date")


def _told(manifest: Manifest) -> str:
    return f"{manifest.rows} rows in {len(manifest.tables)} tables, {manifest.blobs} files ({decimal(manifest.blob_bytes)})"
