"""Reads through `db.read` and `db.glance` on SQLite, and small writes while a heavy push runs beside them."""

from __future__ import annotations

from functools import partial

from bench.load.task import Kind, Task
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target, Values
from bench.stores import OURS as OUR_STORE
from bench.stores import PLAIN, SLACK_SECONDS, Store, start

RATE = Measure("rate", "reads/s")
CPU = Measure("cpu", "µs", "processor time each", more_is_better=False)
PACE = 200
AT_LEAST_SECONDS = 3.0  # six hundred writes: a p99 of fewer says nothing


def reads(store: Store, seconds: float, *, kind: Kind, callers: int) -> Values:
    return store.ask(Task(kind, seconds, callers))


def small_writes(store: Store, seconds: float, *, heavy: bool) -> Values:
    return store.ask(Task("paced writes", max(seconds, AT_LEAST_SECONDS), per_second=PACE, heavy=heavy))


def fill(store: Store) -> None:
    store.ask(Task("fill", SLACK_SECONDS))


def read_step(kind: Kind, title: str, callers: int) -> Step[Store]:
    who = f"{callers} callers" if callers > 1 else "1 caller"
    first = fill if (kind, callers) == ("reads", 1) else None
    run = partial(reads, kind=kind, callers=callers)
    return Step(f"{kind}-{callers}", f"{title}, {who}", (RATE, CPU), run, prepare=first)


def paced_step(key: str, title: str, *, heavy: bool) -> Step[Store]:
    measures = [Measure(at, "ms", at, more_is_better=False) for at in ("p50", "p99", "most")]
    if heavy:
        measures.append(Measure("pushed", "rows/s", "pushed meanwhile"))
    run = partial(small_writes, heavy=heavy)
    return Step(key, title, tuple(measures), run, only=frozenset({OURS}))


SCENARIO = Scenario(
    "reads",
    "reads by key from 100,000 rows on SQLite, and small writes beside a heavy one",
    (Contender(OURS, start("sqlite", OUR_STORE)), Contender("plain", start("sqlite", PLAIN))),
    (
        *(read_step("reads", "db.read, one row", callers) for callers in (1, 16, 64)),
        *(read_step("glances", "db.glance, one row", callers) for callers in (1, 16, 64)),
        *(read_step("pages", "db.read, a page of 100 rows", callers) for callers in (1, 16)),
        paced_step("small", f"{PACE} small writes/s, alone", heavy=False),
        paced_step("beside", f"{PACE} small writes/s beside pushes of 1,000 rows", heavy=True),
    ),
    (Target("beside", "p99", at_most=20.0),),
    (
        "plain: the bare driver in one thread, no event loop, no snapshot around the statement",
        "latencies run from the moment a write was due; the pushes follow each other without a pause",
    ),
)
