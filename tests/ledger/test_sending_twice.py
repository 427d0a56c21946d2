"""Every write can be sent twice: a replay is answered as the first time, and changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.ledger.house import HOME, LUNCH, House, Person, Refused, new_id, together


def without_version(entity: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entity.items() if key != "version"}


async def refused(person: Person, method: str, path: str, body: object = None) -> Refused:
    with pytest.raises(Refused) as caught:
        await person.ok(method, path, body)
    return caught.value


async def test_a_book_created_again_is_answered_as_it_is(home: House) -> None:
    ann, bob = await home.people(2)
    made = {"_id": new_id(), **HOME, "banner": "b.png", "is_initial": True}
    first = await ann.ok("POST", "/books/", made)
    assert await ann.ok("POST", "/books/", made) == first
    await bob.joins(await ann.shares(first))
    again = await ann.ok("POST", "/books/", {**made, "members": [], "upd_time": "x", "crt_user_id": "0"})
    assert again["members"] == [ann.id, bob.id]
    assert (await ann.ok("GET", "/books/")) == [without_version(again)]


async def test_the_same_id_with_other_content_is_a_conflict_that_shows_what_is_there(home: House) -> None:
    ann, bob = await home.people(2)
    book = await ann.makes_book()
    bill = await ann.makes_bill(book)
    other = await refused(ann, "POST", "/books/", {"_id": book["_id"], **HOME, "name": "Other"})
    assert (other.why, other.data) == ((409, "exists_mine"), without_version(book))
    other = await refused(
        ann, "POST", "/bills/", {**LUNCH, "_id": bill["_id"], "book_id": book["_id"], "money": 1}
    )
    assert (other.why, other.data) == ((409, "exists_mine"), without_version(bill))
    foreign = await refused(bob, "POST", "/books/", {"_id": book["_id"], **HOME})
    assert (foreign.why, foreign.data) == ((409, "id_conflict"), None)
    mine = await bob.makes_book()
    foreign = await refused(bob, "POST", "/bills/", {**LUNCH, "_id": bill["_id"], "book_id": mine["_id"]})
    assert (foreign.why, foreign.data) == ((409, "id_conflict"), None)


async def test_my_bill_in_a_book_that_i_left_is_not_shown_in_a_conflict(home: House) -> None:
    ann, bob = await home.people(2)
    book = await together(ann, bob)
    bill = await bob.makes_bill(book)
    await bob.leaves(book)
    mine = await bob.makes_book()
    body = {**LUNCH, "_id": bill["_id"], "book_id": mine["_id"]}
    assert (await refused(bob, "POST", "/bills/", body)).why == (409, "id_conflict")
    await bob.joins(await ann.shares(book))
    shown = await refused(bob, "POST", "/bills/", body)
    assert (shown.why, shown.data["book_id"]) == ((409, "exists_mine"), book["_id"])


async def test_a_bill_created_twice_at_once_is_one_bill(home: House) -> None:
    ann, bob = await home.people(2)
    book = await together(ann, bob)
    body = {**LUNCH, "_id": new_id(), "book_id": book["_id"], "money": "50.50"}
    answers = await asyncio.gather(*[ann.ok("POST", "/bills/", body) for _ in range(8)])
    assert all(answer == answers[0] for answer in answers)
    assert [bill["version"] for bill in (await bob.pulls())["bills"]] == [answers[0]["version"]]


async def test_a_put_sent_twice_is_one_revision_even_with_its_base(home: House) -> None:
    ann = await home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    change = {**LUNCH, "money": 60, "base_upd_time": bill["upd_time"]}
    first = await ann.ok("PUT", f"/bills/{bill['_id']}", change)
    assert first["upd_time"] > bill["upd_time"]
    assert await ann.ok("PUT", f"/bills/{bill['_id']}", change) == first
    late = await refused(ann, "PUT", f"/bills/{bill['_id']}", {**change, "money": 70})
    assert (late.why, late.data) == ((412, "version_conflict"), without_version(first))
    assert (await ann.ok("PUT", f"/bills/{bill['_id']}", {**LUNCH, "money": 70}))["money"] == 70


async def test_a_deletion_sent_twice_is_fine_and_nothing_comes_back_to_life(home: House) -> None:
    ann, bob = await home.people(2)
    book = await together(ann, bob)
    bill = await ann.makes_bill(book)
    path, body = f"/bills/{bill['_id']}", {**LUNCH, "_id": bill["_id"], "book_id": book["_id"]}
    first = await ann.ok("DELETE", path)
    assert await ann.ok("DELETE", path) == first
    assert (await refused(ann, "PUT", path, LUNCH)).why == (404, "deleted")
    assert (await refused(ann, "POST", "/bills/", body)).why == (404, "deleted")
    assert (await refused(bob, "DELETE", path)).why == (404, "deleted")
    await ann.ok("DELETE", f"/books/{book['_id']}")
    assert (await ann.ok("DELETE", f"/books/{book['_id']}"))["_id"] == book["_id"]
    assert (await ann.ok("DELETE", path))["_id"] == bill["_id"]
    for method, where, what in [
        ("PUT", f"/books/{book['_id']}", HOME),
        ("POST", "/books/", {"_id": book["_id"], **HOME}),
        ("POST", "/bills/", {**body, "_id": new_id()}),
        ("PUT", path, LUNCH),
    ]:
        assert (await refused(ann, method, where, what)).why == (404, "deleted")
    assert (await refused(bob, "PUT", f"/books/{book['_id']}", HOME)).why == (404, "not_found")


async def test_without_an_id_a_key_makes_a_post_repeatable(home: House) -> None:
    ann = await home.person()
    book = await ann.makes_book()
    key = {"Idempotency-Key": "one"}
    body = {**LUNCH, "book_id": book["_id"], "money": "10.10"}
    answers = await asyncio.gather(*[ann.ok("POST", "/bills/", body, headers=key) for _ in range(4)])
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["money"] == 10.1
    with pytest.raises(Refused) as caught:
        await ann.ok("POST", "/bills/", {**body, "money": 1}, headers=key)
    assert caught.value.why == (409, "idempotency_key_reused")


async def test_joining_leaving_sharing_and_revoking_can_be_sent_twice(home: House) -> None:
    ann, bob = await home.people(2)
    book = await ann.makes_book()
    code = await ann.shares(book)
    assert await ann.shares(book) == code
    joined = await bob.joins(code)
    assert await bob.joins(code.lower()) == joined
    gone = await bob.leaves(book)
    assert await bob.leaves(book) == gone
    await bob.joins(code)
    removed = await ann.removes(book, bob)
    assert removed["members"] == [ann.id]
    assert await ann.removes(book, bob) == removed
    back = await refused(bob, "POST", "/books/join", {"code": code})
    assert back.why == (404, "unknown_code"), (
        "whoever is removed cannot come back with the code that he knows"
    )
    for _ in range(2):
        assert await ann.ok("DELETE", f"/books/{book['_id']}/share") is None
    assert await ann.shares(book) != code
