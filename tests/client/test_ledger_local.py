"""Without any server: everything an app does with the ledger is there at once, and stays."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast.client import Blocking, Holdfast, InvalidValue, NotHere, NotOwner
from tests.client.conftest import Opener


async def test_a_bill_written_offline_is_there_after_a_new_start(tmp_path: Path) -> None:
    async with Holdfast(tmp_path / "home.db") as app:
        book = await app.ledger.add_book("Home")
        bill = await app.ledger.add_bill(book.id, "12.50", "lunch", remark="with Li")
    async with Holdfast(tmp_path / "home.db") as app:
        assert await app.ledger.bills(book.id) == [bill]
        assert await app.ledger.books() == [book]
        assert (await app.status()).pending == 2


async def test_money_keeps_its_digits(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    for text in ("0.1", "12.50", "99999999999.9999", "-3", "7.10"):
        bill = await app.ledger.add_bill(book.id, text, "x")
        assert str((await app.ledger.bill(bill.id)).money) == text


@pytest.mark.parametrize(
    "money", [0.1, "a lot", "NaN", "Infinity", "1.23456", "1234567890123456", True, None, Decimal("1E+20")]
)
async def test_money_that_the_server_would_refuse_is_refused_here(alone: Opener, money: object) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    with pytest.raises(InvalidValue, match="money"):
        await app.ledger.add_bill(book.id, money, "lunch")
    assert await app.ledger.bills(book.id) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"category": ""},
        {"category": "a\nb"},
        {"category": "x" * 201},
        {"remark": "x" * 4001},
        {"time": "yesterday"},
        {"type": 1.5},
    ],
)
async def test_what_the_server_would_refuse_changes_nothing_here(
    alone: Opener, wrong: dict[str, object]
) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    bill = await app.ledger.add_bill(book.id, 1, "lunch")
    with pytest.raises(InvalidValue):
        await app.ledger.change_bill(bill.id, **wrong)  # type: ignore[arg-type]
    assert await app.ledger.bills(book.id) == [bill]


async def test_a_book_that_was_never_sent_goes_at_once_with_everything_in_it(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    bill = await app.ledger.add_bill(book.id, 1, "lunch")
    await app.ledger.delete_book(book.id)
    assert await app.ledger.books() == []
    assert (await app.status()).pending == 0
    with pytest.raises(NotHere):
        await app.ledger.bill(bill.id)
    with pytest.raises(NotHere):
        await app.ledger.add_bill(book.id, 1, "late")


async def test_a_live_query_shows_every_change_and_ends_with_its_book(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    watching = app.ledger.watch(book.id)

    async def shows(categories: list[str]) -> None:
        """Some answer soon does; answers in between may be left out."""
        async with asyncio.timeout(10):
            while [bill.category for bill in await anext(watching)] != categories:
                pass

    await shows([])
    bill = await app.ledger.add_bill(book.id, 1, "lunch")
    await shows(["lunch"])
    await app.ledger.change_bill(bill.id, category="dinner")
    await shows(["dinner"])
    await app.ledger.delete_bill(bill.id)
    await shows([])
    await app.ledger.delete_book(book.id)
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(watching), 10)


async def test_what_another_process_writes_into_the_replica_is_seen(tmp_path: Path) -> None:
    """Two clients on one file, as two processes have it: only the file connects them."""
    async with Holdfast(tmp_path / "home.db") as one, Holdfast(tmp_path / "home.db") as two:
        book = await one.ledger.add_book("Home")
        watching = two.ledger.watch(book.id)
        assert await anext(watching) == []
        bill = await one.ledger.add_bill(book.id, 1, "lunch")
        assert await asyncio.wait_for(anext(watching), 10) == [bill]


async def test_many_edits_at_once_share_commits_and_all_are_kept(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    await asyncio.gather(*(app.ledger.add_bill(book.id, number, "x") for number in range(500)))
    assert sorted(int(bill.money) for bill in await app.ledger.bills(book.id)) == list(range(500))


async def test_a_change_that_fails_undoes_only_itself(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    results = await asyncio.gather(
        *(app.ledger.add_bill(book.id if n % 2 else "nowhere", n, "x") for n in range(40)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, NotHere) for result in results) == 20
    assert len(await app.ledger.bills(book.id)) == 20


async def test_bills_come_newest_first_and_by_time(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    for day in ("2026-02-18", "2026-02-20", "2026-02-19T12:00:00Z"):
        await app.ledger.add_bill(book.id, 1, "x", time=day)
    times = [bill.time for bill in await app.ledger.bills(book.id)]
    assert times == ["2026-02-20", "2026-02-19T12:00:00Z", "2026-02-18"]
    some = await app.ledger.bills(book.id, since="2026-02-19", before="2026-02-20")
    assert [bill.time for bill in some] == ["2026-02-19T12:00:00Z"]
    assert len(await app.ledger.bills(book.id, limit=1)) == 1


def test_a_script_without_a_loop_uses_the_same_client(tmp_path: Path) -> None:
    with Blocking(tmp_path / "home.db") as app:
        book = app(app.ledger.add_book("Home"))
        app(app.ledger.add_bill(book.id, "12.50", "lunch"))
        for bills in app.each(app.ledger.watch(book.id)):
            assert [bill.category for bill in bills] == ["lunch"]
            break
        with pytest.raises(NotHere):
            app(app.ledger.bill("nothing"))


async def test_the_replica_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with Holdfast(tmp_path / "home.db"):
        assert (tmp_path / "home.db").stat().st_mode & 0o077 == 0


async def test_before_a_login_everything_is_mine(alone: Opener) -> None:
    app = await alone()
    book = await app.ledger.add_book("Home")
    assert app.ledger.can_edit(book)
    try:
        await app.ledger.change_book(book.id, name="Our home")
    except NotOwner:
        pytest.fail("what nobody owns yet is ours")
