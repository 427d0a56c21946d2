"""Messages that clients publish: applied once, answered always, passed on after the commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Invalid, StoreUnavailable
from holdfast.ledger import messages, sweep
from holdfast.ledger.model import By, ChangedBill, NewImage
from tests.conftest import OpenStore
from tests.ledger.house import HOME, LUNCH, new_id
from tests.ledger.wired import ANN, BOB, CAT, Wired, wired

DAY = 24 * 3600.0


@pytest.fixture
async def here(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Wired]:
    async with wired(open_store, tmp_path) as opened:
        yield opened


@pytest.fixture
async def quick(sqlite_stores: OpenStore, tmp_path: Path) -> AsyncIterator[Wired]:
    async with wired(sqlite_stores, tmp_path) as opened:
        yield opened


def message(type_: str, book_id: str, content: object, **fields: object) -> dict[str, Any]:
    return {"id": new_id(), "type": type_, "book_id": book_id, "content": content, "timestamp": 1, **fields}


def as_text(entity: object) -> str:
    return msgspec.json.encode(entity).decode()


def lunch(book_id: str, **fields: object) -> dict[str, object]:
    return {**LUNCH, "_id": new_id(), "book_id": book_id, **fields}


async def publishes(here: Wired, who: int, kind: str, sent: object) -> None:
    await here.messenger.publish(f"heji/up/{who}/{kind}", sent, who)
    await here.settled()


def ack(here: Wired, who: int, sent: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The type and the content of the one answer to a message."""
    (found,) = [told for told in here.messenger.on(f"heji/down/{who}/") if told["type"].endswith("_ACK")]
    assert found["id"] == sent["id"]
    return found["type"], msgspec.json.decode(found["content"])


async def test_a_bill_is_stored_answered_and_passed_on(here: Wired) -> None:
    book = await here.book_of(ANN, BOB, CAT)
    bill = lunch(book.id, money="12.50", crt_user="somebody else", members=[])
    sent = message("ADD_BILL", book.id, as_text(bill))
    await publishes(here, BOB, "bill", sent)
    type_, content = ack(here, BOB, sent)
    assert (type_, content["ok"], content["_id"]) == ("ADD_BILL_ACK", True, bill["_id"])
    for member in (ANN, CAT):
        (forwarded,) = here.messenger.on(f"heji/down/{member}/bill")
        (notified,) = here.messenger.on(f"heji/notify/{member}/bill")
        assert (forwarded["id"], forwarded["timestamp"]) == (sent["id"], content["version"])
        assert notified["id"] != sent["id"]
        assert {**notified, "id": sent["id"]} == forwarded
        stored = msgspec.json.decode(forwarded["content"])
        assert (stored["crt_user"], stored["money"], "sender_id" in forwarded) == (str(BOB), 12.5, False)
    assert here.messenger.on(f"heji/notify/{BOB}") == []


async def test_every_type_runs_the_action_of_its_http_request(here: Wired) -> None:
    book_id = new_id()
    steps = [("book", "ADD_BOOK", as_text({"_id": book_id, **HOME}))]
    bill = lunch(book_id)
    steps += [
        ("book", "UPDATE_BOOK", as_text({"_id": book_id, "name": "New", "type": "daily"})),
        ("bill", "ADD_BILL", as_text(bill)),
        ("bill", "UPDATE_BILL", as_text({**bill, "money": 3})),
        ("bill", "DELETE_BILL", str(bill["_id"])),
        ("book", "DELETE_BOOK", book_id),
    ]
    versions = []
    for kind, type_, content in steps:
        sent = message(type_, book_id, content)
        await publishes(here, ANN, kind, sent)
        answered, said = ack(here, ANN, sent)
        assert (answered, said["ok"]) == (f"{type_}_ACK", True), said
        versions.append(said["version"])
        here.messenger.forget()
    assert versions == sorted(set(versions))
    assert await here.ledger.books(ANN) == []


async def test_an_object_as_content_and_a_deletion_by_entity_are_accepted(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    bill = lunch(book.id)
    for type_, content in (("ADD_BILL", bill), ("DELETE_BILL", bill), ("DELETE_BILL", as_text(bill))):
        here.messenger.forget()
        sent = message(type_, book.id, content)
        await publishes(here, ANN, "bill", sent)
        assert ack(here, ANN, sent)[1]["ok"] is True


async def test_a_message_seen_before_is_answered_as_the_first_time_and_applied_once(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    bill = lunch(book.id)
    sent = message("ADD_BILL", book.id, as_text(bill))
    topic = f"heji/up/{ANN}/bill"
    await asyncio.gather(*[here.messenger.publish(topic, sent, ANN) for _ in range(5)])
    await here.settled()
    acks = here.messenger.on(f"heji/down/{ANN}/bill")
    assert len(acks) == 5
    assert all(found == acks[0] for found in acks)
    assert len(here.messenger.on(f"heji/down/{BOB}/bill")) == 1
    put = msgspec.convert({**LUNCH, "money": 9}, ChangedBill)
    await here.does(ANN, here.orders.change_bill(str(bill["_id"]), put))
    await here.messenger.publish(topic, {**sent, "content": "{}"}, ANN)
    assert here.messenger.on(f"heji/down/{ANN}/bill")[-1] == acks[0], (
        "the id decides, and the first answer stays"
    )
    listed = await here.ledger.bills(ANN, listing_of(book.id))
    assert [int(found.money) for found in listed.bills] == [9]


def listing_of(book_id: str) -> Any:
    from holdfast.ledger.listing import Listing

    return Listing(book_id=book_id, limit=10)


async def test_ids_are_kept_for_seven_days_and_each_author_has_his_own(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    sent = message("ADD_BILL", book.id, as_text(lunch(book.id)))
    await publishes(here, ANN, "bill", sent)
    foreign = {**sent, "content": as_text(lunch(book.id))}
    await publishes(here, BOB, "bill", foreign)
    assert len((await here.ledger.bills(ANN, listing_of(book.id))).bills) == 2
    here.clock.advance(7 * DAY - 60)  # type: ignore[attr-defined]
    assert await here.db.write_in_turns(sweep.sweep, here.clock.now_ms(), 10**12) == 0
    here.clock.advance(120)  # type: ignore[attr-defined]
    assert await here.db.write_in_turns(sweep.sweep, here.clock.now_ms(), 10**12) == 3, "and the book's code"


async def test_a_refusal_is_an_answer_too_and_stays_the_answer(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    bill = await here.bill_of(ANN, book)
    here.messenger.forget()
    sent = message("UPDATE_BILL", book.id, as_text({**LUNCH, "_id": bill.id, "money": 1}))
    await publishes(here, BOB, "bill", sent)
    type_, content = ack(here, BOB, sent)
    assert type_ == "UPDATE_BILL_ACK"
    assert (content["ok"], content["code"], content["reason"]) == (False, 40300, "forbidden")
    assert here.messenger.on(f"heji/down/{ANN}") == []
    first = here.messenger.on(f"heji/down/{BOB}")[0]
    await publishes(here, BOB, "bill", sent)
    assert here.messenger.on(f"heji/down/{BOB}")[1] == first


WRONG: list[tuple[str, str, str, str]] = [
    ("the type of another entity", "bill", "ADD_BOOK", "invalid_field"),
    ("a type that is not known", "bill", "MOVE_BILL", "invalid_field"),
    ("another book than the bill's", "bill", "UPDATE_BILL", "invalid_field"),
    ("another book than the deleted bill's", "bill", "DELETE_BILL", "invalid_field"),
    ("another id than the book's", "book", "UPDATE_BOOK", "invalid_field"),
    ("a book that is not there", "bill", "ADD_BILL", "not_found"),
    ("an image that was never uploaded", "image", "IMAGE_UPLOADED", "not_found"),
]


@pytest.mark.parametrize(("kind", "type_", "reason"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
async def test_what_does_not_fit_together_is_refused(
    quick: Wired, kind: str, type_: str, reason: str
) -> None:
    book, other = await quick.book_of(ANN, BOB), await quick.book_of(ANN)
    bill = await quick.bill_of(ANN, book)
    quick.messenger.forget()
    content: dict[str, Any] = {
        "ADD_BOOK": {**HOME, "_id": other.id},
        "MOVE_BILL": {},
        "UPDATE_BILL": {**LUNCH, "_id": bill.id, "money": 1},
        "DELETE_BILL": {"_id": bill.id},
        "UPDATE_BOOK": {**HOME, "_id": book.id, "name": "x"},
        "ADD_BILL": {**LUNCH, "_id": new_id()},
        "IMAGE_UPLOADED": {"image_id": new_id(), "bill_id": bill.id},
    }[type_]
    book_id = new_id() if type_ == "ADD_BILL" else book.id if kind == "image" else other.id
    sent = message(type_, book_id, content)
    await publishes(quick, ANN, kind, sent)
    answered, said = ack(quick, ANN, sent)
    assert (answered, said["ok"], said["reason"]) == (f"{type_}_ACK", False, reason)
    assert quick.messenger.on(f"heji/down/{BOB}") == []
    (kept,) = (await quick.ledger.bills(ANN, listing_of(book.id))).bills
    assert kept.upd_time == bill.upd_time


@pytest.mark.parametrize(
    ("payload", "answered"),
    [
        (b'{"id": "m1", "type": "ADD_BILL", "content": ', "ADD_BILL_ACK"),
        (b'{"id": "m1", "type": 5, "book_id": "x", "content": {}}', "MESSAGE_ACK"),
        (b'{"id": "m1", "type": "ADD_BILL", "book_id": ["x"], "content": "{}"}', "ADD_BILL_ACK"),
        (b'{"type": "ADD_BILL"', None),
        (b"", None),
        (b"\xff\xfe", None),
        (b"[" * 50_000, None),
    ],
)
async def test_malformed_json_is_answered_when_its_id_can_be_read(
    quick: Wired, payload: bytes, answered: str | None
) -> None:
    await publishes(quick, ANN, "bill", payload)
    told = quick.messenger.on("heji/")
    assert [found["type"] for found in told] == ([answered] if answered else [])
    for found in told:
        assert (found["id"], msgspec.json.decode(found["content"])["ok"]) == ("m1", False)


async def test_wrong_content_is_refused_and_changes_nothing(quick: Wired) -> None:
    book = await quick.book_of(ANN, BOB)
    for content in (
        "",
        "{",
        "5",
        "[]",
        '"x"',
        "{}",
        '{"_id": 5}',
        as_text({**LUNCH, "_id": "x"}),
        None,
        5,
        [],
    ):
        quick.messenger.forget()
        sent = message("ADD_BILL", book.id, content)
        await publishes(quick, ANN, "bill", sent)
        assert ack(quick, ANN, sent)[1]["ok"] is False
    assert (await quick.ledger.bills(ANN, listing_of(book.id))).bills == []


async def test_a_topic_that_is_not_the_authors_is_dropped(quick: Wired) -> None:
    book = await quick.book_of(ANN, BOB)
    sent = message("ADD_BILL", book.id, as_text(lunch(book.id)))
    for topic in (
        f"heji/up/{ANN}/bill",
        f"heji/up/{BOB}/other",
        f"heji/up/0{BOB}/bill",
        "heji/up/x/bill",
        "heji/up",
    ):
        await quick.messenger.publish(topic, sent, BOB)
    await quick.settled()
    assert quick.messenger.told == []
    assert (await quick.ledger.bills(ANN, listing_of(book.id))).bills == []


async def test_when_the_store_is_away_the_message_stays_unacknowledged(
    quick: Wired, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hear` raises, so that the broker does not acknowledge it; sent again, it is applied."""
    book = await quick.book_of(ANN, BOB)
    sent = message("ADD_BILL", book.id, as_text(lunch(book.id)))

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(quick.db, "write", away)
        with pytest.raises(StoreUnavailable):
            await publishes(quick, ANN, "bill", sent)
    assert quick.messenger.told == []
    await publishes(quick, ANN, "bill", sent)
    assert ack(quick, ANN, sent)[1]["ok"] is True


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_an_image_uploaded_by_http_is_passed_on_by_the_uplink(here: Wired) -> None:
    book = await here.book_of(ANN, BOB)
    bill = await here.bill_of(ANN, book)
    blob = await here.ledger.files.receive(chunks(b"\xff\xd8\xff photo"), limit=100, holder="h")
    new = NewImage(
        id=new_id(), bill_id=bill.id, sha256=blob.sha256, md5=blob.md5, size=blob.size,
        mime="image/jpeg", ext="jpg", holder="h",
    )  # fmt: skip
    image = await here.does(ANN, here.orders.add_image(new))
    here.messenger.forget()
    content = {"image_id": image.id, "bill_id": bill.id, "online_path": image.online_path}
    sent = message("IMAGE_UPLOADED", book.id, as_text(content))
    await publishes(here, ANN, "image", sent)
    assert ack(here, ANN, sent)[1] == {"ok": True, "_id": image.id, "version": image.version}
    (forwarded,) = here.messenger.on(f"heji/down/{BOB}/image")
    assert (forwarded["id"], msgspec.json.decode(forwarded["content"])["md5"]) == (sent["id"], blob.md5)
    assert here.messenger.on("heji/notify") == [], "nothing has changed"
    here.messenger.forget()
    sent = message("IMAGE_DELETED", book.id, image.id)
    await publishes(here, ANN, "image", sent)
    assert ack(here, ANN, sent)[1]["ok"] is True
    assert here.messenger.on(f"heji/down/{BOB}/image")[0]["content"] == image.id
    await here.ledger.leave(By(BOB, here.clock.now_ms()), book.id, BOB)


# -- the topic of a book


@pytest.fixture
async def legacy(open_store: OpenStore, tmp_path: Path) -> AsyncIterator[Wired]:
    async with wired(open_store, tmp_path, legacy_book_topic=True) as opened:
        yield opened


async def test_the_topic_of_a_book_is_uplink_and_downlink_in_one(legacy: Wired) -> None:
    book = await legacy.book_of(ANN, BOB)
    topic = f"heji/book/{book.id}/sync"
    sent = message("ADD_BILL", book.id, as_text(lunch(book.id)), sender_id=str(BOB), receiver_ids=["1"])
    await legacy.messenger.publish(topic, sent, BOB)
    await legacy.settled()
    acked, again = sorted(legacy.messenger.on(topic), key=lambda told: told["type"], reverse=True)
    assert (acked["type"], acked["id"]) == ("ADD_BILL_ACK", sent["id"])
    assert (again["type"], again["id"], again["sender_id"]) == ("ADD_BILL", sent["id"], str(BOB))
    assert msgspec.json.decode(again["content"])["crt_user"] == str(BOB)
    assert len(legacy.messenger.on(f"heji/notify/{ANN}/bill")) == 1
    assert len(legacy.messenger.on(f"heji/down/{ANN}/bill")) == 1


async def test_writes_of_every_other_way_reach_the_topic_of_their_book(legacy: Wired) -> None:
    book = await legacy.book_of(ANN)
    topic = f"heji/book/{book.id}/sync"
    await legacy.bill_of(ANN, book)
    sent = message("ADD_BILL", book.id, as_text(lunch(book.id)))
    await publishes(legacy, ANN, "bill", sent)
    assert [(told["type"], told["sender_id"]) for told in legacy.messenger.on(topic)] == [
        ("ADD_BILL", str(ANN))
    ] * 2


@pytest.mark.parametrize("sender", [None, str(ANN), "x"])
async def test_a_sender_who_says_he_is_somebody_else_is_refused(legacy: Wired, sender: str | None) -> None:
    book = await legacy.book_of(ANN, BOB)
    topic = f"heji/book/{book.id}/sync"
    sent = message("ADD_BILL", book.id, as_text(lunch(book.id)), sender_id=sender)
    await legacy.messenger.publish(topic, sent, BOB)
    await legacy.settled()
    (told,) = legacy.messenger.told
    assert told[0] == topic
    assert msgspec.json.decode(told[1]["content"])["reason"] == "forbidden"


# -- reading


@given(st.binary(max_size=200))
def test_no_payload_breaks_the_reader(payload: bytes) -> None:
    messages.readable(payload)
    with suppress(Invalid):
        messages.read(payload)
