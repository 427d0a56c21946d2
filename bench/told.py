"""How soon the members of a book are told of a bill: writers at a fixed pace, and a reader with each."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

from bench import ledgers
from bench.ledgers import Ledger
from bench.load import notified, paced
from bench.load.login import Login
from bench.processes import WORK, talker
from bench.scenario import Measure, Values
from bench.users import new_users

PACE, BOOKS = 1_000, 20
AT_LEAST_SECONDS = 3.0  # three thousand bills: a p99 of fewer says little
MEASURES = (
    Measure("p50", "ms", "due → notified, p50", more_is_better=False),
    Measure("p99", "ms", "due → notified, p99", more_is_better=False),
    Measure("answered_p99", "ms", "due → answered, p99", more_is_better=False),
    Measure("late_p99", "ms", "of which the load was late, p99", more_is_better=False),
)


def told(ledger: Ledger, seconds: float) -> Values:
    """Each book has a writer, and a member who listens."""
    server = ledger.server
    users = new_users(server, 2 * BOOKS, f"told-{secrets.token_hex(4)}")
    writers, readers = users[:BOOKS], users[BOOKS:]
    requests = [
        paced.request(ledgers.create(ledgers.new_book(server, writer, [reader])), writer.headers)
        for writer, reader in zip(writers, readers, strict=True)
    ]
    seconds = max(seconds, AT_LEAST_SECONDS)
    plan = notified.Plan(
        paced.Plan(server.http, requests, PACE, seconds, connections=64),
        server.addresses["mqtt"],
        [Login(reader.id, reader.token) for reader in readers],
        notified=1,
    )
    with (
        tempfile.TemporaryDirectory(dir=WORK / "tmp") as folder,
        talker("bench.load.notified", Path(folder) / "log") as load,
    ):
        return load.ask(plan, dict[str, float], seconds + 60)
