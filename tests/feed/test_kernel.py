"""What a member, a newcomer and a leaver see of a space."""

from __future__ import annotations

import pytest

from holdfast.feed import (
    Ask,
    Change,
    Checksum,
    Entry,
    Page,
    Recorded,
    Turn,
    checksum,
    ensure_epoch,
    lock_space,
    open_space,
    page,
    record,
)
from holdfast.store import Database, Transaction
from holdfast.store.migrations import of_rooms
from tests.conftest import OpenStore

ROOMS = of_rooms("store", "feed")
NOW = 1_750_000_000_000
KEEP = 90 * 24 * 3600 * 1000
BOOK, BILL = 1, 2
ANN, BOB = 7, 3


def found(tx: Transaction, key: int, owner: int) -> Recorded:
    ensure_epoch(tx)
    turn = Turn(open_space(tx, key), (Change(BOOK, f"book{key}", now=key),), join=(owner,))
    (done,) = record(tx, NOW, [turn])
    return done


def put(tx: Transaction, key: int, *entities: str, now_ms: int = NOW) -> Recorded:
    space = lock_space(tx, key)
    assert space is not None
    changes = tuple([Change(BILL, entity, now=1) for entity in entities])
    (done,) = record(tx, now_ms, [Turn(space, changes)])
    return done


def change(tx: Transaction, key: int, **what: object) -> Recorded:
    space = lock_space(tx, key)
    assert space is not None
    (done,) = record(tx, NOW, [Turn(space, **what)])  # type: ignore[arg-type]
    return done


async def pull(db: Database, owner: int, since: int = 0, limit: int = 100) -> Page:
    return await db.read(page, Ask(owner, since, limit), NOW, KEEP)


def seen(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(e.entity, "delete" if not e.live else "add" if e.first else "update") for e in entries]


async def test_a_newcomer_sees_what_was_there_and_the_others_do_not_see_it_again(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        await db.write(put, 1, "a", "b")
        head = (await pull(db, ANN)).head
        done = await db.write(change, 1, changes=(Change(BOOK, "book1", now=2, was=1),), join=(BOB,))
        bobs = await pull(db, BOB)
        assert seen(bobs.entries) == [("a", "add"), ("b", "add"), ("book1", "add")]
        anns = await pull(db, ANN, head)
        assert seen(anns.entries) == [("book1", "update")]
        assert anns.entries[0].version == bobs.entries[-1].version == done.versions[0]
        assert anns.head == bobs.head == done.versions[0]


async def test_who_leaves_sees_everything_deleted_and_nothing_more(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        await db.write(change, 1, join=(BOB,))
        await db.write(put, 1, "a", "b")
        head = (await pull(db, BOB)).head
        done = await db.write(change, 1, leave=(BOB,))
        await db.write(put, 1, "c")
        await db.write(change, 1, changes=(Change(BILL, "a", now=2, was=1),))
        gone = await pull(db, BOB, head)
        assert seen(gone.entries) == [("book1", "delete"), ("a", "delete"), ("b", "delete")]
        assert gone.entries[0].version == done.left
        assert (await db.read(checksum, BOB)).count == 0
        assert (await db.read(checksum, ANN)).count == 4


async def test_an_entity_is_an_add_until_it_changes_and_again_when_it_comes_back(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        states = [(1, None, "add"), (2, 1, "update"), (None, 2, "delete"), (3, None, "add"), (4, 3, "update")]
        for now, was, action in states:
            head = (await pull(db, ANN)).head
            await db.write(change, 1, changes=(Change(BILL, "a", now=now, was=was),))
            assert seen((await pull(db, ANN, head)).entries) == [("a", action)]


async def test_an_entity_that_changes_twice_in_a_transaction_appears_once(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        first = await db.write(found, 1, ANN)
        changes = (
            Change(BILL, "a", now=1),
            Change(BILL, "b", now=5),
            Change(BILL, "a", now=2, was=1),
            Change(BOOK, "book1", now=3, was=1),
        )
        done = await db.write(change, 1, changes=changes)
        page = await pull(db, ANN, first.versions[-1])
        assert [(e.entity, e.version) for e in page.entries] == list(
            zip(("b", "a", "book1"), sorted(set(done.versions)), strict=True)
        )
        assert done.versions[0] == done.versions[2]
        assert await db.read(checksum, ANN) == Checksum(3, f"{10:016x}", done.versions[-1])


async def test_a_clock_that_was_set_back_breaks_no_order(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        await db.write(put, 1, "a", now_ms=NOW + 10**9)
        await db.write(put, 1, "b", now_ms=NOW)
        await db.write(change, 1, join=(BOB,))
        await db.write(put, 1, "c", now_ms=NOW - 10**9)
        for owner in (ANN, BOB):
            assert [e.entity for e in (await pull(db, owner)).entries] == ["book1", "a", "b", "c"]


async def test_a_clock_set_back_between_members_who_left_breaks_no_order(open_store: OpenStore) -> None:
    """The space remembers its own head: whoever comes next may have a feed that is far behind."""
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        await db.write(put, 1, "a", now_ms=NOW + 10**9)
        await db.write(change, 1, join=(BOB,), leave=(ANN,))
        await db.write(put, 1, "b", now_ms=NOW - 10**9)
        assert [e.entity for e in (await pull(db, BOB)).entries] == ["book1", "a", "b"]


async def test_closing_a_space_shows_everyone_everything_deleted_and_refuses_more(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        await db.write(change, 1, join=(BOB,))
        await db.write(put, 1, "a")
        heads = {owner: (await pull(db, owner)).head for owner in (ANN, BOB)}
        done = await db.write(change, 1, close=True)
        for owner, head in heads.items():
            gone = await pull(db, owner, head)
            assert seen(gone.entries) == [("book1", "delete"), ("a", "delete")]
            assert gone.entries[0].version == done.left
        with pytest.raises(ValueError, match="closed"):
            await db.write(put, 1, "b")


async def test_a_closed_space_says_so_under_its_lock(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(found, 1, ANN)
        await db.write(change, 1, close=True)
        space = await db.write(lock_space, 1)
        assert space is not None
        assert not space.is_open
        assert await db.write(lock_space, 2) is None


async def test_an_empty_feed_is_an_empty_page(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await db.write(ensure_epoch)
        page = await pull(db, ANN)
        assert (page.entries, page.head, page.has_more, page.reset) == ([], 0, False, False)


async def test_many_changes_at_once_and_one_by_one_make_the_same_log(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        for key in (1, 2):
            await db.write(found, key, key)
        names = [f"n{n}" for n in range(5)]
        for name in (*names, *names[1:3], "z"):
            await db.write(put, 1, name)
        await db.write(put, 2, *names)
        await db.write(put, 2, *names[1:3], "z")
        one, many = [seen((await pull(db, owner)).entries) for owner in (1, 2)]
        assert one[1:] == many[1:]
