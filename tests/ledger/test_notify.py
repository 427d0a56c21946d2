"""Who is told what after a commit, on which topics, and in which words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import HoldfastError
from holdfast.ledger import notify
from holdfast.ledger.actions import do
from holdfast.ledger.model import By, ChangedBill, ChangedBook, NewBill, NewImage
from holdfast.store import Transaction
from tests.conftest import OpenStore
from tests.ledger.house import HOME, LUNCH, new_id
from tests.ledger.wired import ANN, BOB, CAT, Wired, wired


@pytest.fixture
async def here(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Wired]:
    async with wired(open_store, tmp_path, down_topics=False) as opened:
        yield opened


def by(here: Wired, who: int) -> By:
    return By(who, here.clock.now_ms())


async def test_a_new_bill_is_told_to_every_member_but_its_author(here: Wired) -> None:
    book = await here.book_of(ANN, BOB, CAT)
    bill = await here.bill_of(BOB, book, money="12.50")
    assert here.messenger.topics() == [f"heji/notify/{ANN}/bill", f"heji/notify/{CAT}/bill"]
    (first, second) = [message for _, message in here.messenger.told]
    assert first == second, "the same for every member"
    content = msgspec.json.decode(first.pop("content"))
    id_ = first.pop("id")
    assert len(id_) == 20
    assert first == {"type": "ADD_BILL", "book_id": book.id, "timestamp": bill.version}
    assert content["_id"] == bill.id
    assert content["money"] == 12.5
    assert content["crt_user"] == str(BOB)
    assert "version" not in content


async def test_each_write_has_its_type_and_a_deletion_the_id_alone(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    bill = await here.bill_of(ANN, book)
    put = msgspec.convert({**LUNCH, "money": 1}, ChangedBill)
    await here.does(ANN, here.orders.change_bill(bill.id, put))
    blob = await here.ledger.files.receive(chunks(b"\xff\xd8\xff a photo"), limit=100, holder="h")
    new = NewImage(
        id=new_id(), bill_id=bill.id, sha256=blob.sha256, md5=blob.md5, size=blob.size,
        mime="image/jpeg", ext="jpg", holder="h",
    )  # fmt: skip
    image = await here.does(ANN, here.orders.add_image(new))
    await here.does(ANN, here.orders.delete_image(image.id))
    await here.does(ANN, here.orders.delete_bill(bill.id))
    await here.does(ANN, here.orders.change_book(book.id, msgspec.convert({"name": "New"}, ChangedBook)))
    await here.does(ANN, here.orders.delete_book(book.id))
    told = here.messenger.told
    assert [(topic.rpartition("/")[2], message["type"]) for topic, message in told] == [
        ("bill", "ADD_BILL"),
        ("bill", "UPDATE_BILL"),
        ("image", "IMAGE_UPLOADED"),
        ("image", "IMAGE_DELETED"),
        ("bill", "DELETE_BILL"),
        ("book", "UPDATE_BOOK"),
        ("book", "DELETE_BOOK"),
    ]
    assert [message["content"] for _, message in told[3:5]] == [image.id, bill.id]
    assert told[-1][1]["content"] == book.id
    versions = [message["timestamp"] for _, message in told]
    assert versions == sorted(set(versions))


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_a_replay_and_a_refusal_tell_nobody(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    bill = await here.bill_of(ANN, book)
    here.messenger.forget()
    await here.does(ANN, here.orders.change_bill(bill.id, msgspec.convert(LUNCH, ChangedBill)))
    with pytest.raises(HoldfastError):
        await here.does(BOB, here.orders.delete_bill(bill.id))
    await here.does(ANN, here.orders.delete_bill(bill.id))
    here.messenger.forget()
    await here.does(ANN, here.orders.delete_bill(bill.id))
    assert here.messenger.told == []


async def test_a_newcomer_hears_of_the_book_and_the_others_of_its_new_members(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    code = await here.ledger.share(by(here, ANN), book.id)
    joined = await here.ledger.join(by(here, CAT), code.code)
    await here.settled()
    told = [(topic, message["type"]) for topic, message in here.messenger.told]
    assert told == [
        (f"heji/notify/{CAT}/book", "ADD_BOOK"),
        (f"heji/notify/{ANN}/book", "UPDATE_BOOK"),
        (f"heji/notify/{BOB}/book", "UPDATE_BOOK"),
    ]
    for _, message in here.messenger.told:
        assert message["timestamp"] == joined.version
        assert msgspec.json.decode(message["content"])["members"] == [str(ANN), str(BOB), str(CAT)]


@pytest.mark.parametrize("who", [BOB, ANN], ids=["he leaves", "he is removed"])
async def test_whoever_leaves_is_told_that_the_book_is_gone_and_nothing_more(here: Wired, who: int) -> None:
    book = await here.book_of(ANN, BOB, CAT)
    await here.ledger.leave(by(here, who), book.id, BOB)
    await here.settled()
    told = [(topic, message["type"]) for topic, message in here.messenger.told]
    stay = {ANN, CAT} - {who}
    assert told == [
        (f"heji/notify/{BOB}/book", "DELETE_BOOK"),
        *[(f"heji/notify/{member}/book", "UPDATE_BOOK") for member in sorted(stay)],
    ]
    assert here.messenger.told[0][1]["content"] == book.id
    here.messenger.forget()
    await here.bill_of(ANN, book)
    assert here.messenger.topics() == [f"heji/notify/{CAT}/bill"]


async def test_a_deletion_is_told_at_the_place_where_the_members_feeds_hold_it(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    await here.bill_of(ANN, book)
    here.messenger.forget()
    gone = await here.does(ANN, here.orders.delete_book(book.id))
    (message,) = here.messenger.on(f"heji/notify/{BOB}/book")
    assert message["timestamp"] == gone.version


async def test_http_writes_reach_clients_of_the_uplink_too(open_store: OpenStore, tmp_path: Path) -> None:
    async with wired(open_store, tmp_path) as here:
        book = await here.book_of(ANN, BOB)
        await here.bill_of(ANN, book)
        assert here.messenger.topics() == [f"heji/notify/{BOB}/bill", f"heji/down/{BOB}/bill"]
        (notified,), (forwarded,) = here.messenger.on("heji/notify"), here.messenger.on("heji/down")
        assert notified == forwarded


async def test_own_devices_hear_of_it_with_its_origin(open_store: OpenStore, tmp_path: Path) -> None:
    async with wired(open_store, tmp_path, notify_own_devices=True, down_topics=False) as here:
        book = await here.book_of(ANN, BOB)
        new = here.orders.create_bill(msgspec.convert({**LUNCH, "book_id": book.id}, NewBill))
        await here.does(ANN, new, origin="phone")
        assert here.messenger.topics() == [f"heji/notify/{BOB}/bill", f"heji/notify/{ANN}/bill"]
        assert {message["origin"] for message in here.messenger.on("heji/")} == {"phone"}
        here.messenger.forget()
        await here.ledger.leave(by(here, ANN), book.id, BOB)
        await here.settled()
        told = [(topic, message["type"]) for topic, message in here.messenger.told]
        assert told == [
            (f"heji/notify/{BOB}/book", "DELETE_BOOK"),
            (f"heji/notify/{ANN}/book", "UPDATE_BOOK"),
        ]


async def test_without_the_setting_no_origin_is_told(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    step = here.orders.change_book(book.id, msgspec.convert({**HOME, "name": "New"}, ChangedBook))
    await here.does(ANN, step, origin="phone")
    (message,) = here.messenger.on("heji/")
    assert "origin" not in message


async def test_a_large_batch_is_told_in_pieces_and_in_its_order(
    here: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's other work gets its turn, and nobody hears of a bill before the one that came first."""
    monkeypatch.setattr(notify, "TOPICS_A_TURN", 7)
    book = await here.book_of(ANN, BOB, CAT)
    steps = [
        here.orders.create_bill(msgspec.convert({**LUNCH, "_id": new_id(), "book_id": book.id}, NewBill))
        for _ in range(40)
    ]
    await here.ledger.batch(by(here, ANN), steps)
    await asyncio.sleep(0)
    first = len(here.messenger.told)
    assert first < 80
    for _ in range(40):
        await asyncio.sleep(0)
    for member in (BOB, CAT):
        told = [msgspec.json.decode(m["content"])["_id"] for m in here.messenger.on(f"heji/notify/{member}/")]
        assert told == [step.id for step in steps]


async def test_an_answer_is_on_its_way_before_anybody_is_told(here: Wired) -> None:
    """Commit, then answer, then notify: whoever waits for the write goes on first."""
    book = await here.book_of(ANN, BOB)
    step = here.orders.create_bill(msgspec.convert({**LUNCH, "book_id": book.id}, NewBill))
    await here.ledger.db.write(do, by(here, ANN), step.run)
    assert here.messenger.told == []
    await here.settled()
    assert len(here.messenger.told) == 1


async def test_nobody_is_told_of_what_was_undone(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    step = here.orders.create_bill(msgspec.convert({**LUNCH, "book_id": book.id}, NewBill))

    def fails_late(tx: Transaction) -> None:
        do(tx, by(here, ANN), step.run)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await here.db.write(fails_late)
    await here.settled()
    assert here.messenger.told == []
