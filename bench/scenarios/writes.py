"""Durable small writes through `db.write` on SQLite, beside the same statement with a commit each."""

from __future__ import annotations

from functools import partial

from bench.load.task import Task
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values
from bench.stores import COUNTED_SECONDS, Store, start
from bench.stores import OURS as OUR_STORE
from bench.stores import PLAIN as PLAIN_STORE

CALLERS = (1, 16, 64, 256)
RATE = Measure("rate", "writes/s")
COMMITS = Measure("commits", "per write", "commits", more_is_better=False)
CPU = Measure("cpu", "µs", "processor time each", more_is_better=False)
SYNCS = Measure("syncs", "per write", "fsyncs", more_is_better=False)


def writes(store: Store, seconds: float, *, callers: int) -> Values:
    return store.ask(Task("writes", seconds, callers))


def syncs(store: Store, _seconds: float) -> Values:
    return store.counted(Task("writes", COUNTED_SECONDS, 64))


def scenario(
    name: str, backend: str, about: str, targets: tuple[Target, ...], *footnotes: str
) -> Scenario[Store]:
    return Scenario(
        name,
        about,
        (Contender(OURS, start(backend, OUR_STORE)), Contender("plain", start(backend, PLAIN_STORE))),
        (
            *(
                Step(
                    f"callers-{callers}",
                    f"{callers} callers" if callers > 1 else "1 caller",
                    (RATE, COMMITS, CPU),
                    partial(writes, callers=callers),
                )
                for callers in CALLERS
            ),
            Step("syncs", "64 callers, fsyncs counted", (SYNCS,), syncs, warm_up=False, repeat=2),
        ),
        targets,
        (
            "plain: one connection, one thread, no event loop, one commit each; more callers would only wait",
            *footnotes,
        ),
    )


SCENARIO = scenario(
    "writes",
    "sqlite",
    "durable small writes on SQLite (WAL, synchronous=FULL), one row of 100 bytes each",
    (Target("callers-64", "commits", at_most=0.1),),
)
