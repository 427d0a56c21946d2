"""How the ledger's costs grow: with the bills in the store, with a book's members; and big books that come and go."""

from __future__ import annotations

from bench import big_books
from bench.big_books import BOOKS, JOINS, PACE, Store
from bench.growth import SIZES, growth
from bench.ledgers import FILLED
from bench.scenario import OURS, Contender, Measure, Scenario, Step, Target
from bench.users import LIFTED

CPU = Measure("cpu", "µs", "server's processor time each", more_is_better=False)
MEMBERS = (2, 20, 200)
LIMIT_MS = 20

page_steps, page_targets = growth(
    "page", "a page of 100", CPU, grow=Store.fill_to, run=Store.page, at_most=1.5, sizes=SIZES
)
create_steps, create_targets = growth(
    "create", f"a bill, at {PACE}/s", CPU, grow=Store.fill_to, run=Store.create, at_most=1.5, sizes=SIZES
)


def members_step(members: int) -> Step[Store]:
    prepare, run = big_books.with_members(members)
    return Step(
        f"members@{members}", f"a bill in a book of {members}, at {PACE}/s", (CPU,), run, prepare=prepare
    )


def at_most_linear(members: int) -> Target:
    factor = members / MEMBERS[0]
    return Target(f"members@{members}", "cpu", at_most=factor, than_step=f"members@{MEMBERS[0]}")


SCENARIO = Scenario(
    "ledger-growth",
    "the ledger's costs as it grows",
    (Contender(OURS, big_books.store),),
    (
        *(step for both in zip(page_steps, create_steps, strict=True) for step in both),
        *map(members_step, MEMBERS),
        Step(
            "big",
            f"a book of {FILLED:,} is joined and left {JOINS} times, {BOOKS} are deleted; the longest of each",
            (
                *(Measure(key, "ms", key, more_is_better=False) for key in ("join", "leave", "delete")),
                Measure("alone", "ms", f"others' bills at {PACE}/s alone, p99", more_is_better=False),
                Measure("beside", "ms", "the same beside it, p99", more_is_better=False),
            ),
            Store.come_and_go,
            prepare=Store.make_big_books,
            warm_up=False,
            repeat=1,
        ),
    ),
    (
        *page_targets,
        *create_targets,
        *map(at_most_linear, MEMBERS[1:]),
        *(Target("big", key, at_most=LIMIT_MS) for key in ("join", "leave", "delete", "beside")),
    ),
    (f"limits lifted: {' '.join(f'--set {name}={value}' for name, value in LIFTED.items())}",),
)
