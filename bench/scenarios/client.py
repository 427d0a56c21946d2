"""The client: a first sync of 100,000 bills, 10,000 edits made offline that drain, and how soon a full replica is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench import ledgers
from bench.load.replica import Ask, Said
from bench.peers import pouchdb
from bench.processes import Talker, talker
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values
from bench.servers import Server, call, holdfast
from bench.users import LIFTED, User

ROWS = 100_000
EDITS = 10_000
NAME, PASSWORD = "bench", "correct horse"
LAST = 600.0

RATE = Measure("rate", "rows/s")
OPEN = Measure("ms", "ms", "until 50 rows are shown", more_is_better=False)


class Replicas(Struct):
    """A server, and a process that is a client of it."""

    server: Server
    client: Talker
    http: str
    folder: Path
    fill: Callable[[int], None]
    edit_name: str = NAME
    """Whose edits drain: somebody with an empty book, so that only the edits are measured."""

    def ask(self, what: str, replica: str, name: str = NAME) -> Said:
        return self.client.ask(
            Ask(
                what,
                str(self.folder / replica),
                self.http,
                self.server.addresses.get("mqtt", ""),
                name,
                PASSWORD,
                EDITS,
            ),
            Said,
            LAST,
        )


@contextmanager
def ours(folder: Path) -> Iterator[Replicas]:
    with (
        holdfast(folder, LIFTED) as server,
        talker("bench.load.replica", folder / "client.log") as client,
    ):
        owner = _user(server, NAME)
        book = ledgers.new_book(server, owner, [])
        ledgers.new_book(server, _user(server, "editor"), [])
        yield Replicas(
            server,
            client,
            server.http,
            folder,
            lambda rows: ledgers.fill(server, book, rows, owner.headers),
            "editor",
        )


def _user(server: Server, name: str) -> User:
    who = {"username": name, "password": PASSWORD}
    call(server, "POST", "/auth/register", who)
    said = call(server, "POST", "/auth/login", who)["data"]
    assert isinstance(said, dict)
    return User(str(said["userId"]), str(said["accessToken"]))


@contextmanager
def pouch(folder: Path) -> Iterator[Replicas]:
    with pouchdb.serving(folder) as server, pouchdb.talking(folder) as client:
        address = f"http://{server.http}/{pouchdb.DATABASE}"
        yield Replicas(server, client, address, folder, lambda rows: pouchdb.fill(server, rows))


def fill(replicas: Replicas) -> None:
    replicas.fill(ROWS)


def first_sync(replicas: Replicas, _seconds: float) -> Values:
    return {"rate": replicas.ask("first-sync", "full").rate}


def opening(replicas: Replicas, _seconds: float) -> Values:
    return {"ms": replicas.ask("open", "full").ms}


def drain(replicas: Replicas, _seconds: float) -> Values:
    return {"rate": replicas.ask("drain", "edits", replicas.edit_name).rate}


SCENARIO = Scenario(
    "client",
    "an offline-first client and its server: first sync, offline edits, opening a full replica",
    (Contender(OURS, ours), Contender("pouchdb", pouch)),
    (
        Step(
            "first-sync", f"first sync of {ROWS:,} rows", (RATE,), first_sync, fill, warm_up=False, repeat=3
        ),
        Step("open", f"a replica of {ROWS:,} rows is opened", (OPEN,), opening, repeat=5),
        Step("drain", f"{EDITS:,} edits made offline are sent", (RATE,), drain, warm_up=False, repeat=3),
    ),
    (
        Target("first-sync", "rate", at_least=30_000),
        Target("drain", "rate", at_least=5_000),
        Target("open", "ms", at_most=50),
    ),
    (
        "the limits of requests are lifted; server and client share the machine",
        "holdfast: durable on both sides (the server syncs each commit); pouchdb: LevelDB, not synced",
    ),
)
