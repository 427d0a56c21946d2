"""What things cost as a feed grows, in steps of SQLite's own machine: no clock, so no noise.

A step is one instruction; reading one more row costs a few dozen of them, whatever the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.feed import Ask, Change, Turn, ensure_epoch, lock_space, open_space, page, record
from holdfast.store import migrations as numbered
from holdfast.store.sqlite.connection import SqliteTransaction, open_writer
from tests.feed.world import ITEM, KEEP_MS, ROOMS

NOW = 1_750_000_000_000
ANN = 1
SMALL, LARGE = 1_000, 100_000


class Book:
    """One file with a space of many entities, and a counter of the work done in it."""

    def __init__(self, path: Path) -> None:
        self.connection = open_writer(path, None)
        self.connection.execute("BEGIN")
        self.tx = SqliteTransaction(self.connection)
        numbered.apply(self.tx, lambda text: self.connection.execute(text).fetchall(), ROOMS, NOW)
        ensure_epoch(self.tx)

    def found(self, key: int, owners: range | tuple[int, ...], entities: int) -> None:
        changes = tuple([Change(ITEM, f"t{key}-{n}", now=1) for n in range(entities)])
        record(self.tx, NOW, [Turn(open_space(self.tx, key), changes, join=tuple(owners))])

    def write(self, key: int, entity: str) -> None:
        self.turn(key, changes=(Change(ITEM, entity, now=1),))

    def turn(
        self, key: int, *, changes: tuple[Change, ...] = (), join: tuple[int, ...] = (), close: bool = False
    ) -> None:
        space = lock_space(self.tx, key)
        assert space is not None
        record(self.tx, NOW, [Turn(space, changes, join=join, close=close)])

    def pull(self, since: int, limit: int = 100, owner: int = ANN) -> int:
        return page(self.tx, Ask(owner, since, limit), NOW, KEEP_MS).head

    def steps(self, work: Callable[[], object]) -> int:
        taken = 0

        def step() -> bool:
            nonlocal taken
            taken += 1
            return False

        work()  # prepares the statements
        self.connection.set_progress_handler(step, 1)
        try:
            work()
        finally:
            self.connection.set_progress_handler(None)
        return taken

    def undone(self, work: Callable[[], object]) -> Callable[[], None]:
        def and_back() -> None:
            self.connection.execute("SAVEPOINT trial")
            work()
            self.connection.execute("ROLLBACK TO trial")
            self.connection.execute("RELEASE trial")

        return and_back


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Callable[[], Book]]:
    opened: list[Book] = []

    def book() -> Book:
        opened.append(Book(tmp_path / f"{len(opened)}.db"))
        return opened[-1]

    yield book
    for each in opened:
        each.connection.execute("ROLLBACK")
        each.connection.close()


Books = Callable[[], Book]


def test_nothing_costs_more_in_a_large_space_than_in_a_small_one(books: Books) -> None:
    costs: list[dict[str, int]] = []
    for entities in (SMALL, LARGE):
        book = books()
        book.found(1, (ANN, 2), entities)
        head = book.pull(0)
        costs.append(
            {
                "the first page": book.steps(lambda b=book: b.pull(0)),
                "a page in the middle": book.steps(lambda b=book, h=head, n=entities: b.pull(h - n // 2)),
                "the last page": book.steps(lambda b=book, h=head: b.pull(h - 3)),
                "an empty page": book.steps(lambda b=book, h=head: b.pull(h)),
                "a new entity": book.steps(book.undone(lambda b=book: b.write(1, "new"))),
                "a change": book.steps(book.undone(lambda b=book: b.write(1, "t1-7"))),
                "a join": book.steps(book.undone(lambda b=book: b.turn(1, join=(9,)))),
                "closing": book.steps(book.undone(lambda b=book: b.turn(1, close=True))),
            }
        )
        book.turn(1, close=True)
        costs[-1]["a page of deletions"] = book.steps(lambda b=book, h=head: b.pull(h))
    assert costs[0] == costs[1]


def test_a_write_costs_at_most_linear_in_members(books: Books) -> None:
    book = books()
    costs = []
    for key, members in enumerate((2, 20, 200), start=1):
        book.found(key, range(1, members + 1), 10)
        costs.append(book.steps(book.undone(lambda k=key: book.write(k, "new"))))
    first_member = (costs[1] - costs[0]) / 18
    assert (costs[2] - costs[1]) / 180 <= first_member * 1.2


def test_spaces_that_did_not_change_cost_one_look_each(books: Books) -> None:
    costs = []
    for spaces in (1, 101, 1001):
        book = books()
        for key in range(1, spaces + 1):
            book.found(key, (ANN,), 5)
        head = book.pull(0)
        book.write(1, "new")
        costs.append(book.steps(lambda b=book, h=head: b.pull(h)))
    look = (costs[1] - costs[0]) / 100
    assert look < 30
    assert (costs[2] - costs[1]) / 900 <= look * 1.1


def test_a_full_pull_reads_only_the_spaces_that_its_page_reaches(books: Books) -> None:
    costs = []
    for spaces in (2, 20):
        book = books()
        for key in range(1, spaces + 1):
            book.found(key, (ANN,), 300)
        costs.append(book.steps(lambda b=book: b.pull(0)))
    look = 40
    assert costs[1] - costs[0] <= 18 * look


def test_joining_and_leaving_touch_no_entry(books: Books) -> None:
    book = books()
    book.found(1, (ANN,), SMALL)
    rows = "SELECT sum(seq), sum(pos), count(*) FROM feed_log"
    before = book.connection.execute(rows).fetchall()
    book.turn(1, join=(2,))
    book.turn(1, close=True)
    assert book.connection.execute(rows).fetchall() == before
