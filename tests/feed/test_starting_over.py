"""Resets: when a client has to start over, when it must not, and what the epoch carries."""

from __future__ import annotations

from holdfast.feed import Ask, new_epoch, page, page_if_current, sweep
from holdfast.feed.epoch import Epoch, must_start_over, next_epoch
from holdfast.feed.page import Page
from holdfast.store import Database
from tests.conftest import OpenStore
from tests.feed.follower import Follower
from tests.feed.test_any_order import DAY_MS
from tests.feed.world import KEEP_MS, ROOMS, Step, deliver, run, started, truth

NOW = 1_750_000_000_000
ANN = 1


async def with_items(db: Database, items: int) -> None:
    await db.write(started)
    steps = [Step(1, "found", ANN), *[Step(1, "item", name=f"t{n}") for n in range(items)]]
    await db.write(run, NOW, steps)


async def ask(
    db: Database, since: int, epoch: str | None, *, limit: int = 2, now_ms: int = NOW, keep_ms: int = KEEP_MS
) -> Page:
    return await db.read(page, Ask(ANN, since, limit, epoch), now_ms, keep_ms)


async def test_a_restored_store_makes_every_client_start_over_once(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 4)
        done = await ask(db, 0, None, limit=100)
        assert not done.has_more
        await db.write(new_epoch)
        first = await ask(db, done.next_since, done.epoch)
        assert first.reset
        assert [entry.entity for entry in first.entries] == ["root1", "t0"]
        second = await ask(db, first.next_since, first.epoch)
        assert not second.reset
        assert [entry.entity for entry in second.entries] == ["t1", "t2"]


async def test_a_client_in_its_first_pull_starts_over_too_when_the_store_was_restored(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 4)
        first = await ask(db, 0, None)
        await db.write(new_epoch)
        assert (await ask(db, first.next_since, first.epoch)).reset


async def test_since_above_the_head_starts_over_with_an_epoch_and_without(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 1)
        done = await ask(db, 0, None)
        for epoch in (done.epoch, None):
            again = await ask(db, done.head + 1, epoch)
            assert again.reset
            assert again.next_since == done.head
            assert len(again.entries) == 2


async def test_a_last_complete_pull_before_the_floor_starts_over(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 1)
        done = await ask(db, 0, None)
        assert not (await ask(db, done.head, done.epoch, now_ms=NOW + KEEP_MS)).reset
        assert (await ask(db, done.head, done.epoch, now_ms=NOW + KEEP_MS + 1)).reset


async def test_every_complete_pull_moves_the_floor_even_an_empty_one(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 1)
        done = await ask(db, 0, None)
        later = await ask(db, done.head, done.epoch, now_ms=NOW + KEEP_MS)
        assert not (await ask(db, later.head, later.epoch, now_ms=NOW + 2 * KEEP_MS)).reset


async def test_an_incomplete_increment_keeps_the_time_of_the_last_complete_pull(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 1)
        done = await ask(db, 0, None)
        await db.write(run, NOW, [Step(1, "item", name=f"n{n}") for n in range(5)])
        part = await ask(db, done.head, done.epoch, now_ms=NOW + KEEP_MS)
        assert part.has_more
        assert part.epoch == done.epoch
        assert (await ask(db, part.next_since, part.epoch, now_ms=NOW + KEEP_MS + 1)).reset


async def test_a_full_pull_under_way_is_never_reset_by_the_floor(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 8)
        done = await ask(db, 0, None, limit=100)
        for since, epoch in ((0, None), (0, done.epoch), (done.head + 9, done.epoch)):
            now_ms = NOW
            found = await ask(db, since, epoch, now_ms=now_ms)
            while found.has_more:
                now_ms += 2 * KEEP_MS
                found = await ask(db, found.next_since, found.epoch, now_ms=now_ms)
                assert not found.reset


async def test_a_client_without_an_epoch_is_never_checked_against_it(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 1)
        done = await ask(db, 0, None)
        await db.write(new_epoch)
        later = await ask(db, done.head, None, now_ms=NOW + 2 * KEEP_MS)
        assert not later.reset
        assert later.entries == []


async def test_an_epoch_that_is_not_ours_starts_over(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 1)
        done = await ask(db, 0, None)
        store = done.epoch.partition(".")[0]
        for epoch in (
            "",
            "x",
            "…",
            f"{store}.",
            f"{store}.-5",
            f"{store}.1e9",
            f"{store}.٣",
            f"{store}.{'9' * 99}",
        ):
            assert (await ask(db, done.head, epoch)).reset, epoch


async def test_a_client_that_starts_over_drops_what_is_gone(open_store: OpenStore) -> None:
    """The tombstone was swept while it was away: only marking and sweeping can tell it."""
    async with open_store(ROOMS) as db:
        await with_items(db, 3)
        follower = Follower(ANN)
        follower.take(await db.read(deliver, follower.ask(100), NOW), 100)
        assert "t1" in follower.rows
        await db.write(run, NOW + DAY_MS, [Step(1, "kill", pick=1)])
        later = NOW + 200 * DAY_MS
        assert await db.write_in_turns(sweep, later, KEEP_MS) == 1
        while follower.take(await db.read(deliver, follower.ask(1), later), 1):
            pass
        assert follower.resets == 1
        assert follower.difference(await db.read(truth, ANN)) is None


async def test_what_was_swept_once_counts_when_the_setting_grows_later(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 3)
        done = await ask(db, 0, None, limit=100)
        await db.write(run, NOW + DAY_MS, [Step(1, "kill", pick=1)])
        later = NOW + 10 * DAY_MS
        assert await db.write_in_turns(sweep, later, 2 * DAY_MS) == 1
        assert (await ask(db, done.head, done.epoch, now_ms=later, keep_ms=365 * DAY_MS)).reset


def test_the_epoch_is_read_as_it_was_written() -> None:
    for epoch in (Epoch("4f1c"), Epoch("4f1c", 0), Epoch("4f1c", NOW)):
        assert Epoch.decode(epoch.encode()) == epoch


def test_a_pull_from_zero_forgets_when_the_last_one_was_complete() -> None:
    given = Epoch("s", 5)
    assert next_epoch(given, "s", NOW, from_zero=True, complete=False) == Epoch("s")
    assert next_epoch(given, "s", NOW, from_zero=False, complete=False) == given
    assert next_epoch(given, "s", NOW, from_zero=True, complete=True) == Epoch("s", NOW)


def test_a_pull_that_ended_at_the_floor_goes_on() -> None:
    assert not must_start_over(Epoch("s", 5), 7, 7, "s", 5)
    assert must_start_over(Epoch("s", 4), 7, 7, "s", 5)


async def test_whoever_is_up_to_date_is_answered_by_one_statement_as_by_the_page(
    open_store: OpenStore,
) -> None:
    async with open_store(ROOMS) as db:
        await with_items(db, 3)
        done = await ask(db, 0, None, limit=100)
        old = Epoch(Epoch.decode(done.epoch).store, NOW - KEEP_MS - 1).encode()
        for epoch in (None, done.epoch, old, "another", "another.5", f"{done.epoch}x"):
            for since in (0, done.head - 1, done.head, done.head + 1):
                asked = Ask(ANN, since, 2, epoch)
                whole = await db.read(page, asked, NOW, KEEP_MS)
                quick = await db.read(page_if_current, asked, NOW, KEEP_MS)
                is_current = since == done.head and not whole.reset
                assert quick == (whole if is_current else None)
        stranger = Ask(2, 0, 2, None)
        assert await db.read(page_if_current, stranger, NOW, KEEP_MS) == await db.read(
            page, stranger, NOW, KEEP_MS
        )
