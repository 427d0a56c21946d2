"""What a member, a newcomer and a leaver see of a space."""

from __future__ import annotations

from holdfast.feed import (
    Ask,
    Change,
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
