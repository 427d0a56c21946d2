"""The ledger of two people and their devices against a real server."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.client import (
    AnotherUser,
    ChangeLost,
    Differs,
    Event,
    Holdfast,
    LoggedOut,
    NotOwner,
    Offline,
    Parked,
    Refused,
)
from holdfast.client.replica import Transaction
from tests.acceptance.serving import PASSWORD
from tests.client.world import SHORT_NAMES, World, until

REFUSED = "x" * (SHORT_NAMES + 1)
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 500


async def shared_book(world: World) -> tuple[Holdfast, Holdfast, str]:
    ann, bob = await world.person("ann"), await world.person("bob")
    book = await ann.ledger.add_book("Home")
    await bob.ledger.join((await ann.ledger.share(book.id)).code)
    return ann, bob, book.id


async def sql(app: Holdfast, statement: str) -> None:
    """Damages a replica behind its back."""

    def run(tx: Transaction) -> None:
        tx.execute(statement)
        tx.changed("ledger")

    await app._replica.write(run)


async def test_what_was_written_before_the_first_login_belongs_to_who_logs_in(world: World) -> None:
    app = await world.opened("ann")
    book = await app.ledger.add_book("Home")
    bill = await app.ledger.add_bill(book.id, "12.50", "lunch")
    assert bill.crt_user == ""
    await app.register("ann", PASSWORD)
    await app.settled()
    [mine] = await app.ledger.bills(book.id)
    assert (mine.crt_user, mine.synced) == (app.user_id, 1)
    assert (await app.ledger.book(book.id)).members == (app.user_id,)
    assert await app.verify()


async def test_a_replica_belongs_to_one_user(world: World) -> None:
    ann = await world.person("ann")
    await world.person("bob")
    with pytest.raises(AnotherUser):
        await ann.login("bob", PASSWORD)
    assert ann.logged_in


async def test_only_the_maker_changes_a_row_and_the_refusal_comes_before_anything_is_written(
    world: World,
) -> None:
    ann, bob, book = await shared_book(world)
    bill = await ann.ledger.add_bill(book, 1, "lunch")
    await ann.settled()
    await bob.settled()
    [seen] = await bob.ledger.bills(book)
    assert not bob.ledger.can_edit(seen)
    assert ann.ledger.can_edit(bill)
    for forbidden in (
        bob.ledger.change_bill(bill.id, money=2),
        bob.ledger.delete_bill(bill.id),
        bob.ledger.add_image(bill.id, PNG),
        bob.ledger.change_book(book, name="Mine"),
        bob.ledger.delete_book(book),
    ):
        with pytest.raises(NotOwner):
            await forbidden
    assert (await bob.status()).pending == 0
    assert await bob.ledger.bills(book) == [seen]


async def test_an_edit_made_while_its_row_is_on_the_way_stays_unsynced(world: World) -> None:
    ann, bob, book = await shared_book(world)
    await ann.settled()
    sync = ann.ledger.sync
    bill = await ann.ledger.add_bill(book, 1, "first")
    ask = ann._http.ask

    async def edited_meanwhile(method: str, path: str, **how: object) -> object:
        answer = await ask(method, path, **how)  # type: ignore[arg-type]
        if path.endswith("/batch") and (await ann.ledger.bill(bill.id)).category == "first":
            await ann.ledger.change_bill(bill.id, category="second")
            row = await ann.ledger.bill(bill.id)
            assert row.synced == 0
        return answer

    ann._http.ask = edited_meanwhile  # type: ignore[method-assign,assignment]
    await sync.drain(at_once=True)
    await ann.settled()
    await bob.settled()
    assert [bill.category for bill in await bob.ledger.bills(book)] == ["second"]
    assert await ann.verify()


async def test_a_deletion_vanishes_locally_only_after_the_servers_yes(world: World) -> None:
    ann, bob, book = await shared_book(world)
    bill = await ann.ledger.add_bill(book, 1, "lunch")
    await ann.settled()
    world.server.kill()
    await ann.ledger.delete_bill(bill.id)
    assert await ann.ledger.bills(book) == []
    assert (await ann.status()).pending == 1
    with pytest.raises(Offline):
        await ann.refresh()
    await world.restart()
    await ann.settled()
    await bob.settled()
    assert await bob.ledger.bills(book) == []
    assert (await ann.status()).pending == 0
    assert await ann.verify()


async def test_two_devices_that_edit_one_bill_settle_on_the_last_writer(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    bill = await ann.ledger.add_bill(book, 1, "first")
    await ann.settled()
    other = await world.person("ann", device="2")
    await other.settled()
    await other.ledger.change_bill(bill.id, category="other device")
    await ann.ledger.change_bill(bill.id, category="this device")
    await ann.settled()
    await other.settled()
    await ann.settled()
    assert {(await app.ledger.bill(bill.id)).category for app in (ann, other)} in (
        {"other device"},
        {"this device"},
    )
    assert await ann.verify()
    assert await other.verify()


async def test_a_bill_deleted_on_one_device_and_edited_on_another_is_told_as_lost(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    bill = await ann.ledger.add_bill(book, 1, "first")
    await ann.settled()
    other = await world.person("ann", device="2")
    await other.settled()
    events: list[Event] = []
    other.on_event(events.append)
    await ann.ledger.delete_bill(bill.id)
    await ann.settled()
    await other.ledger.change_bill(bill.id, category="too late")
    await other.settled()
    assert await other.ledger.bills(book) == []
    [lost] = await other.ledger.lost()
    assert (lost.kind, lost.id, lost.reason) == ("bill", bill.id, "deleted")
    assert "too late" in lost.body

    async def told() -> bool:
        return any(isinstance(event, ChangeLost) for event in events)

    await until(told)
    await other.ledger.forget_lost()
    assert await other.ledger.lost() == []


async def test_a_book_that_goes_takes_everything_in_it_also_what_was_never_sent(world: World) -> None:
    ann = await world.person("ann")
    book = (await ann.ledger.add_book("Home")).id
    async with world.replica("bob") as bob:
        await bob.register("bob", PASSWORD)
        await bob.ledger.join((await ann.ledger.share(book)).code)
        await bob.settled()
    await ann.ledger.delete_book(book)
    await ann.settled()
    async with world.replica("bob", doors={"http": "127.0.0.1:9"}) as away:
        await away.ledger.add_bill(book, 3, "into the void")
    bob = await world.opened("bob")
    await bob.settled()
    assert await bob.ledger.books() == []
    [lost] = await bob.ledger.lost()
    assert "into the void" in lost.body
    assert await bob.verify()


async def test_who_leaves_a_book_loses_it_and_who_joins_again_has_all_of_it(world: World) -> None:
    ann, bob, book = await shared_book(world)
    await ann.ledger.add_bill(book, 1, "lunch")
    await bob.ledger.leave(book)
    assert await bob.ledger.books() == []
    await ann.settled()
    code = (await ann.ledger.share(book)).code
    await bob.ledger.join(code)
    assert [bill.category for bill in await bob.ledger.bills(book)] == ["lunch"]
    await bob.settled()
    assert await bob.verify()


async def test_a_row_that_the_server_refuses_is_parked_and_blocks_nobody(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    await ann.settled()
    events: list[Event] = []
    ann.on_event(events.append)
    bad = await ann.ledger.add_bill(book, 1, REFUSED)
    good = [await ann.ledger.add_bill(book, number, "good") for number in range(30)]
    await ann.settled()
    [parked] = await ann.ledger.parked()
    assert parked.id == bad.id
    assert parked.refusal is not None
    assert parked.refusal.reason == "invalid_field"
    assert (await ann.status()).parked == 1
    assert [event.id for event in events if isinstance(event, Parked)] == [bad.id]
    for bill in good:
        assert (await ann.ledger.bill(bill.id)).synced == 1
    # changing it is another try
    await ann.ledger.change_bill(bad.id, category="better")
    await ann.settled()
    assert await ann.ledger.parked() == []
    assert await ann.verify()


async def test_a_parked_row_can_be_discarded(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    bill = await ann.ledger.add_bill(book, 1, "right")
    await ann.settled()
    await ann.ledger.change_bill(bill.id, category=REFUSED)
    await ann.settled()
    assert await ann.ledger.parked()
    await ann.ledger.discard(bill.id)
    assert (await ann.ledger.bill(bill.id)).category == "right"
    assert (await ann.status()).pending == 0
    assert await ann.verify()


async def test_bills_of_a_book_that_is_refused_wait_for_it(world: World) -> None:
    ann, _bob, _book = await shared_book(world)
    await ann.settled()
    book = await ann.ledger.add_book(REFUSED)
    bill = await ann.ledger.add_bill(book.id, 1, "lunch")
    await ann.ledger.sync.drain(at_once=True)
    assert [row.id for row in await ann.ledger.parked()] == [book.id]
    assert (await ann.ledger.bill(bill.id)).refusal is None
    await ann.ledger.change_book(book.id, name="Better")
    await ann.settled()
    assert await ann.ledger.parked() == []
    assert (await ann.ledger.bill(bill.id)).synced == 1


async def test_a_difference_is_found_by_the_checksum_and_repaired(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    for number in range(20):
        await ann.ledger.add_bill(book, number, "x")
    await ann.settled()
    before = await ann.ledger.bills(book)
    await sql(ann, f"DELETE FROM bill WHERE id = '{before[3].id}'")
    await sql(ann, f"UPDATE bill SET upd_time = '2020-01-01T00:00:00.000Z' WHERE id = '{before[5].id}'")
    await sql(
        ann,
        "INSERT INTO bill SELECT '0000000000000000000v', book_id, money, type, category, time, remark, crt_user,"
        " crt_time, upd_time, version, known, synced, deleted, rev, sent_rev, sent_ms, msg_id, seen, base, refusal"
        f" FROM bill WHERE id = '{before[0].id}'",
    )
    events: list[Event] = []
    ann.on_event(events.append)
    assert await ann.verify() is False
    assert any(isinstance(event, Differs) for event in events)
    await ann.refresh()
    assert await ann.ledger.bills(book) == before
    assert await ann.verify()


async def test_a_session_that_the_server_ended_keeps_everything_and_goes_on_after_the_next_login(
    world: World,
) -> None:
    ann, _bob, book = await shared_book(world)
    await ann.settled()
    events: list[Event] = []
    ann.on_event(events.append)
    await ann._http.ask("POST", "/auth/logout-all", body=b"{}", at_once=True)
    await ann.ledger.add_bill(book, 1, "meanwhile")

    async def logged_out() -> bool:
        return any(isinstance(event, LoggedOut) for event in events)

    await until(logged_out)
    assert not ann.logged_in
    assert (await ann.status()).pending == 1
    await ann.login("ann", PASSWORD)
    await ann.settled()
    assert (await ann.status()).pending == 0


async def test_an_image_goes_up_and_comes_down_when_somebody_looks(world: World) -> None:
    ann, bob, book = await shared_book(world)
    bill = await ann.ledger.add_bill(book, 1, "lunch")
    image = await ann.ledger.add_image(bill.id, PNG)
    await ann.settled()
    await bob.settled()
    [seen] = await bob.ledger.images(bill.id)
    assert (seen.id, seen.md5, seen.mime) == (image.id, image.md5, "image/png")
    world_files = bob._contents
    assert not world_files.has(image.md5)
    assert (await bob.ledger.image_file(image.id)).read_bytes() == PNG
    world.server.kill()
    assert (await bob.ledger.image_file(image.id)).read_bytes() == PNG
    await world.restart()
    await ann.ledger.delete_image(image.id)
    await ann.settled()
    await bob.settled()
    assert await bob.ledger.images(bill.id) == []
    assert await bob.verify()


async def test_what_needs_the_server_says_so_when_it_is_away(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    world.server.kill()
    for call in (ann.ledger.share(book), ann.ledger.join("NOTHING1"), ann.refresh()):
        with pytest.raises(Offline):
            await call
    await world.restart()
    with pytest.raises(Refused):
        await ann.ledger.join("NOTHING1")


async def test_offline_work_goes_out_by_itself_when_the_server_is_back(world: World) -> None:
    ann, bob, book = await shared_book(world)
    world.server.kill()
    for number in range(10):
        await ann.ledger.add_bill(book, number, "offline")
    await world.restart()
    ann.network_returned()

    async def sent() -> bool:
        return (await ann.status()).pending == 0

    await until(sent)
    await bob.refresh()
    assert len(await bob.ledger.bills(book)) == 10


async def test_a_first_pull_that_is_cut_goes_on_where_it_was(world: World) -> None:
    ann, _bob, book = await shared_book(world)
    await asyncio.gather(*(ann.ledger.add_bill(book, number, "x") for number in range(2500)))
    await ann.settled()
    other = world.replica("ann-other")
    await other.open()
    pages = 0
    ask = other._http.ask

    async def cut_after_one(method: str, path: str, **how: object) -> object:
        nonlocal pages
        if path.endswith("/changes"):
            pages += 1
            if pages > 1:
                raise Offline
        return await ask(method, path, **how)  # type: ignore[arg-type]

    other._http.ask = cut_after_one  # type: ignore[method-assign,assignment]
    await other.login("ann", PASSWORD)

    async def one_page_is_here() -> bool:
        return bool(await other.ledger.books())

    await until(one_page_is_here)
    assert len(await other.ledger.bills(book)) < 2500
    await other.close()
    again = await world.opened("ann-other")
    before = again._http.requests
    await again.refresh()
    assert len(await again.ledger.bills(book)) == 2500
    assert again._http.requests - before < 12
    assert await again.verify()


async def test_two_processes_on_one_replica_share_the_work(world: World) -> None:
    """One talks to the server; what the other writes goes out all the same."""
    ann, _bob, book = await shared_book(world)
    await ann.settled()
    second = await world.opened("ann")
    bill = await second.ledger.add_bill(book, 1, "from the second")

    async def synced() -> bool:
        return (await second.ledger.bill(bill.id)).synced == 1

    await until(synced)
    assert second._http.requests == 0
