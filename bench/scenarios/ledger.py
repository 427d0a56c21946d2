"""Shared books: what a bill costs over HTTP, a batch, a page of the feed, an empty pull, and how soon members are told."""

from __future__ import annotations

from bench import ledgers, told
from bench.ledgers import BATCH, FILLED, MEMBERS, Ledger
from bench.load import wrk
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values
from bench.users import LIFTED

CPU = Measure("cpu", "µs", "server's processor time each", more_is_better=False)
CONNECTIONS = Measure("connections", "", "at its best with connections")
CREATES = (Measure("rate", "bills/s"), CPU)
PAGES = (Measure("rate", "pages/s"), CPU, CONNECTIONS)


def creates(ledger: Ledger, seconds: float) -> Values:
    assert ledger.create is not None
    return wrk.requests_per_second(ledger.server, seconds, what=ledger.create, connections=64)


def best_creates(ledger: Ledger, seconds: float) -> Values:
    assert ledger.create is not None
    return wrk.at_its_best(ledger.server, seconds, what=ledger.create)


def shared_creates(ledger: Ledger, seconds: float) -> Values:
    assert ledger.shared is not None
    return wrk.at_its_best(ledger.server, seconds, what=ledger.shared)


def batches(ledger: Ledger, seconds: float) -> Values:
    assert ledger.batch is not None
    said = wrk.at_its_best(ledger.server, seconds, what=ledger.batch, connections=(1, 2, 4))
    return {**said, "rate": said["rate"] * BATCH, "cpu": said["cpu"] / BATCH}


def pages(ledger: Ledger, seconds: float) -> Values:
    assert ledger.page is not None
    return wrk.at_its_best(ledger.server, seconds, what=ledger.page(), connections=(4, 16, 64))


def empty_pulls(ledger: Ledger, seconds: float) -> Values:
    assert ledger.nothing is not None
    return wrk.requests_per_second(ledger.server, seconds, what=ledger.nothing(), connections=64)


def listen(ledger: Ledger) -> None:
    if ledger.listen is not None:
        ledger.listen()


def fill(ledger: Ledger) -> None:
    ledger.fill_to(FILLED)


def only(*names: str) -> frozenset[str]:
    return frozenset((OURS, *names))


SCENARIO = Scenario(
    "ledger",
    "bills over HTTP, authenticated and durable; the feed; notifications",
    (
        Contender(OURS, ledgers.ours),
        Contender("pocketbase", ledgers.pocketbase),
        Contender("kinto", ledgers.kinto),
        Contender("noop", ledgers.noop),
    ),
    (
        Step("create-64", "a bill, 64 connections", CREATES, creates, only=only("pocketbase", "kinto")),
        Step(
            "create-best",
            "a bill, each at its own best number of connections",
            (*CREATES, CONNECTIONS),
            best_creates,
            only=only("pocketbase", "kinto"),
        ),
        Step(
            "members",
            f"a bill, {MEMBERS} members notified, each at its best",
            (*CREATES, CONNECTIONS),
            shared_creates,
            prepare=listen,
            only=only("pocketbase"),
        ),
        Step(
            "batch",
            f"batches of {BATCH}",
            (Measure("rate", "rows/s"), CPU, CONNECTIONS),
            batches,
            only=only("pocketbase"),
        ),
        Step(
            "page",
            f"a page of 100 from the middle of {FILLED:,}",
            PAGES,
            pages,
            prepare=fill,
            only=only("pocketbase", "kinto"),
        ),
        Step(
            "empty",
            "an empty pull, beside a request that does nothing; 64 connections",
            (Measure("rate", "pulls/s"), CPU),
            empty_pulls,
            only=only("noop"),
        ),
        Step(
            "told",
            f"{told.PACE:,} bills/s in {told.BOOKS} books of two",
            told.MEASURES,
            told.told,
            only=only(),
            warm_up=False,
        ),
    ),
    (
        Target("create-64", "rate", at_least=4, beside="pocketbase"),
        Target("create-best", "rate", at_least=2, beside="pocketbase"),
        Target("create-best", "rate", at_least=25, beside="kinto"),
        Target("members", "rate", at_least=1, beside="pocketbase"),
        Target("batch", "rate", at_least=5, beside="pocketbase"),
        Target("page", "rate", at_least=3, beside="pocketbase"),
        Target("page", "rate", at_least=15, beside="kinto"),
        Target("empty", "rate", at_least=0.8, beside="noop"),
        Target("told", "p99", at_most=20),
    ),
    (
        f"limits lifted: {' '.join(f'--set {name}={value}' for name, value in LIFTED.items())}",
        "pocketbase: as it comes, no authentication, no notification; it does not sync its commits (synchronous=NORMAL)",
        "kinto: gunicorn with 2 processes of 8 threads; creates that it refused (409, please retry) do not count",
        "due → notified: from the moment a bill had to be sent to its notification at a subscriber, its commit included",
    ),
)
