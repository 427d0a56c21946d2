"""A server with one room that exists for the fault harness alone: notes, written durably as fast as they come.

It is `holdfast.store` and `holdfast.http` as the real server puts them together, started and stopped like it, with one
POST that writes rows in three tables at once and one GET. Each start brings one more migration, so that a kill at a
start meets a store that is being changed.

With `--mutant` it breaks one promise, to show that the harness sees it:

| mutant | what it does |
|---|---|
| early | answers before the commit |
| torn | writes a note in two transactions |
| forgetful | takes a note that was sent twice for two |
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import uvloop
from litestar import Router

from holdfast import log
from holdfast.app import open_database
from holdfast.cli.options import read_settings
from holdfast.clock import SystemClock
from holdfast.data_folder import DataFolder
from holdfast.errors import Conflict, InvalidToken
from holdfast.http import health
from holdfast.http.door import Door
from holdfast.http.handlers import get, post
from holdfast.http.routes import application
from holdfast.http.server import HttpServer
from holdfast.http.visit import Caller
from holdfast.metrics import Metrics
from holdfast.settings import Settings
from holdfast.store import Database, Query, Snapshot, Statement, Transaction
from holdfast.store.migrations import Migration, of_rooms
from tests.faults.note import PAGE, SHELVES, Kept, Note, Page, Row, seal_of

MOST_MIGRATIONS = 12
SLOW_COMMIT = 0.02  # the early mutant's disk: the page cache outlives SIGKILL, so only this time can show it

NOTES = Migration(
    "notes",
    1,
    "notes",
    """
    CREATE TABLE note (id BIGINT PRIMARY KEY, shelf BIGINT NOT NULL, serial BIGINT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX note_by_shelf ON note (shelf, serial);
    CREATE TABLE note_seal (id BIGINT PRIMARY KEY, seal TEXT NOT NULL);
    CREATE TABLE shelf (shelf BIGINT PRIMARY KEY, last BIGINT NOT NULL);
    """
    + "".join(f"INSERT INTO shelf (shelf, last) VALUES ({shelf}, 0);" for shelf in range(SHELVES)),
)


def copy_made(number: int) -> Migration:
    """A migration that takes its time and touches everything: a second run, or half of one, would be noticed."""
    text = f"CREATE TABLE note_copy_{number} AS SELECT id, text FROM note;"
    text += f"CREATE UNIQUE INDEX note_copy_{number}_id ON note_copy_{number} (id);"
    if number > 2:
        text += f"DROP TABLE note_copy_{number - 1};"
    return Migration("notes", number, f"copy_{number}", text)


FIND = Query(tuple[int, str], "SELECT serial, text FROM note WHERE id = :id")
NEXT = Query(int, "UPDATE shelf SET last = last + 1 WHERE shelf = :shelf RETURNING last")
ADD = Statement("INSERT INTO note (id, shelf, serial, text) VALUES (:id, :shelf, :serial, :text)")
SEAL = Statement("INSERT INTO note_seal (id, seal) VALUES (:id, :seal)")
LAST = Query(int, "SELECT last FROM shelf WHERE shelf = :shelf")
ROWS = Query(
    Row,
    "SELECT note.id, serial, text, seal FROM note LEFT JOIN note_seal ON note_seal.id = note.id"
    f" WHERE shelf = :shelf AND serial > :above ORDER BY serial LIMIT {PAGE}",
)
LOOSE = Query(
    Row,
    "SELECT note_seal.id, NULL, NULL, seal FROM note_seal LEFT JOIN note ON note.id = note_seal.id"
    " WHERE note.id IS NULL LIMIT 10",
)


def add(tx: Transaction, note: Note) -> Kept:
    kept = add_row(tx, note)
    tx.execute(SEAL, id=note.id, seal=seal_of(note.text))
    return kept


def add_row(tx: Transaction, note: Note) -> Kept:
    shelf = note.id % SHELVES
    serial = tx.one(
        NEXT, shelf=shelf
    )  # the shelf's lock: who sends the same note at the same time waits here
    there = tx.row(FIND, id=note.id)
    if there is not None:
        raise AlreadyKept(Kept(note.id, there[0]), same=there[1] == note.text)
    tx.execute(ADD, id=note.id, shelf=shelf, serial=serial, text=note.text)
    return Kept(note.id, serial)


class AlreadyKept(Exception):
    """Undoes the serial that was taken, and carries the first answer."""

    def __init__(self, kept: Kept, *, same: bool) -> None:
        self.kept = kept
        self.same = same


def page(view: Snapshot, shelf: int, above: int) -> Page:
    return Page(view.one(LAST, shelf=shelf), view.rows(ROWS, shelf=shelf, above=above))


async def keep(db: Database, note: Note) -> Kept:
    return await db.write(add, note)


# -- mutants


async def keep_early(db: Database, note: Note) -> Kept:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Kept] = loop.create_future()

    def add_and_tell(tx: Transaction) -> None:
        kept = add(tx, note)
        loop.call_soon_threadsafe(lambda: answer.done() or answer.set_result(kept))
        time.sleep(SLOW_COMMIT)

    committing = asyncio.create_task(db.write(add_and_tell))
    committing.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard, and ignored
    await asyncio.wait([committing, answer], return_when=asyncio.FIRST_COMPLETED)
    if answer.done():
        return answer.result()
    await committing
    return await answer


async def keep_torn(db: Database, note: Note) -> Kept:
    kept = await db.write(add_row, note)
    await db.write(lambda tx: tx.execute(SEAL, id=note.id, seal=seal_of(note.text)))
    return kept


async def keep_forgetful(db: Database, note: Note) -> Kept:
    def move(tx: Transaction) -> Kept:
        serial = tx.one(NEXT, shelf=note.id % SHELVES)
        tx.execute(Statement("DELETE FROM note WHERE id = :id"), id=note.id)
        tx.execute(Statement("DELETE FROM note_seal WHERE id = :id"), id=note.id)
        tx.execute(ADD, id=note.id, shelf=note.id % SHELVES, serial=serial, text=note.text)
        tx.execute(SEAL, id=note.id, seal=seal_of(note.text))
        return Kept(note.id, serial)

    return await db.write(move)


KEEPERS = {None: keep, "early": keep_early, "torn": keep_torn, "forgetful": keep_forgetful}


# -- the server


class Nobody:
    def known(self, token: str) -> Caller | None:
        return None

    async def verify(self, token: str) -> Caller:
        raise InvalidToken


def router(db: Database, mutant: str | None) -> Router:
    keeper = KEEPERS[mutant]

    @post("/notes")
    async def keep_note(data: Note) -> Kept:
        try:
            return await keeper(db, data)
        except AlreadyKept as there:
            if not there.same:
                raise Conflict from there
            return there.kept

    @get("/notes/{shelf:int}")
    async def notes(shelf: int, above: int) -> Page:
        return await db.read(page, shelf, above)

    @get("/loose")
    async def loose() -> list[Row]:
        return await db.read(lambda view: view.rows(LOOSE))

    return Router("/", route_handlers=[keep_note, notes, loose])


def migrations(folder: DataFolder) -> list[Migration]:
    """One more at each start."""
    with (folder.path / "starts").open("ab") as tally:
        tally.write(b".")
        starts = tally.tell()
    copies = [copy_made(number) for number in range(2, min(starts + 1, MOST_MIGRATIONS) + 1)]
    return [*of_rooms("store", "http"), NOTES, *copies]


async def serve(settings: Settings, ready_file: Path, mutant: str | None) -> None:
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    metrics = Metrics()
    folder = DataFolder(Path(settings.data))
    db = open_database(settings, folder, metrics)
    async with AsyncExitStack() as undo:
        http = HttpServer(settings.listen.http, settings.http, metrics)
        folder.lock()
        undo.callback(folder.unlock)
        await db.start(migrations(folder))
        undo.push_async_callback(db.stop)
        routes = application(
            [health.router(metrics, lambda: db.trouble), router(db, mutant)], settings.limits
        )
        door = Door(routes, Nobody(), SystemClock(), metrics, settings.http, settings.limits)
        undo.push_async_callback(http.stop)
        await http.start(door)
        part = ready_file.with_name(ready_file.name + ".part")
        part.write_bytes(msgspec.json.encode({"http": http.address}))
        part.replace(ready_file)
        await ending.wait()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--http", required=True)
    options.add_argument("--ready-file", type=Path, required=True)
    options.add_argument("--set", action="append", default=[])
    options.add_argument("--mutant", choices=[name for name in KEEPERS if name])
    given = options.parse_args()
    unlimited = "limits.anonymous_requests=1000000000"
    settings = read_settings(given.data, None, [unlimited, *given.set], {"listen.http": given.http}).settings
    log.configure(settings.log)
    uvloop.run(serve(settings, given.ready_file, given.mutant))


if __name__ == "__main__":
    main()
