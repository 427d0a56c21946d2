"""Lists, pulls, batches: what is answered, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.clock import ManualClock
from holdfast.settings import Feed
from tests.ledger.conftest import OpenHouse
from tests.ledger.follower import Follower, agrees, shown
from tests.ledger.house import HOME, LUNCH, House, Person, new_id, together

DAY = 24 * 3600.0


# -- the list of bills


async def test_bills_come_newest_first_page_by_page(home: House) -> None:
    ann = await home.person()
    book = await ann.makes_book()
    times = [
        "2026-02-18",
        "2026-02-18T23:59:59Z",
        "2026-02-19",
        "2026-02-19T00:00:00+08:00",
        "2025-12-31",
        "2026-02-18",
    ]
    bills = [await ann.makes_bill(book, time=time) for time in times]
    ordered = [bills[n]["_id"] for n in (2, 1, 3)] + sorted([bills[0]["_id"], bills[5]["_id"]], reverse=True)
    ordered.append(bills[4]["_id"])
    for limit in (1, 2, 3, 100):
        query: dict[str, Any] = {"book_id": book["_id"], "limit": limit}
        found: list[str] = []
        while True:
            page = await ann.ok("GET", "/bills/", params=query)
            assert len(page["bills"]) <= limit
            found += [bill["_id"] for bill in page["bills"]]
            if not page["has_more"]:
                assert page["next_cursor"] is None
                break
            query["cursor"] = page["next_cursor"]
        assert found == ordered


async def test_bills_between_two_times_both_included(home: House) -> None:
    ann = await home.person()
    book = await ann.makes_book()
    for time in ("2026-02-17T23:59:59.999Z", "2026-02-18", "2026-02-18T23:59:59.999Z", "2026-02-19"):
        await ann.makes_bill(book, time=time)

    async def found(**query: str) -> list[str]:
        page = await ann.ok("GET", "/bills", params={"book_id": book["_id"], **query})
        return [bill["time"] for bill in page["bills"]]

    both = ["2026-02-18T23:59:59.999Z", "2026-02-18"]
    assert await found(**{"from": "2026-02-18", "to": "2026-02-18"}) == both
    assert await found(**{"from": "2026-02-18T00:00:00Z", "to": "2026-02-18T23:59:59.999Z"}) == both
    assert await found(to="2026-02-17") == ["2026-02-17T23:59:59.999Z"]
    assert await found(**{"from": "2026-02-19"}) == ["2026-02-19"]
    assert await found(**{"from": "2026-02-20", "to": "2026-02-18"}) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"limit": "x"}, "limit"), ({"from": "x"}, "from"),
        ({"to": "2026-02-30"}, "to"), ({"cursor": "x"}, "cursor"), ({"cursor": ""}, "cursor"),
    ],
)  # fmt: skip
async def test_a_wrong_question_is_told_which_part_of_it_is_wrong(
    quick_home: House, query: dict[str, Any], field: str
) -> None:
    ann = await quick_home.person()
    book = await ann.makes_book()
    said = await ann.ask("GET", "/bills", params={"book_id": book["_id"], **query})
    assert (said.status_code, said.json()["reason"], said.json()["data"]["field"]) == (
        400,
        "invalid_field",
        field,
    )


# -- pulls


async def test_a_newcomer_sees_the_whole_book_ahead_of_him_and_a_leaver_its_end(home: House) -> None:
    ann, bob = await home.people(2)
    own = await bob.makes_book()
    follower = Follower(bob)
    await follower.catch_up()
    book = await ann.makes_book()
    bills = [await ann.makes_bill(book) for _ in range(5)]
    image = await ann.adds_image(bills[0], b"GIF89a")
    await ann.ok("DELETE", f"/bills/{bills[4]['_id']}")
    await bob.joins(await ann.shares(book))
    since = follower.since
    page = await bob.pulls(since, limit=1000)
    assert {item["action"] for item in page["books"] + page["images"]} == {"add"}
    assert [item["action"] for item in page["bills"]].count("add") == 4
    assert min(item["version"] for item in page["bills"]) > since
    await follower.catch_up(limit=1)
    await agrees(follower)
    await bob.leaves(book)
    page = await bob.pulls(follower.since, limit=1000)
    gone = {item["_id"]: item["action"] for kind in ("books", "bills", "images") for item in page[kind]}
    assert gone == dict.fromkeys([book["_id"], image["_id"], *[bill["_id"] for bill in bills]], "delete")
    await follower.catch_up(limit=2)
    await agrees(follower)
    assert [key for key in follower.rows if key[0] == "book"] == [("book", own["_id"])]


async def test_an_empty_pull_says_where_the_feed_stands(home: House) -> None:
    ann = await home.person()
    empty = await ann.pulls()
    assert (empty["books"], empty["bills"], empty["images"]) == ([], [], [])
    assert (empty["server_time"], empty["next_since"], empty["has_more"]) == (0, 0, False)
    book = await ann.makes_book()
    head = (await ann.pulls())["server_time"]
    assert head == book["version"]
    again = await ann.pulls(head)
    assert (again["server_time"], again["next_since"], "reset" in again) == (head, head, False)


async def test_a_cursor_from_another_history_starts_over(home: House) -> None:
    ann = await home.person()
    follower = Follower(ann)
    for _ in range(3):
        await ann.makes_bill(await ann.makes_book())
    await follower.catch_up()
    follower._epoch = "another.1750000000000"
    follower.rows["bill", "gone"] = {"_id": "gone", "upd_time": "x"}
    await follower.catch_up(limit=2)
    assert follower.resets == 1
    await agrees(follower)
    ahead = await ann.pulls(follower.since + 10**9)
    assert ahead["reset"] is True
    assert len(ahead["books"]) == 3
    assert "reset" not in await ann.pulls(follower.since), "the seed's clients send no epoch"


async def test_whoever_was_away_for_longer_than_deletions_are_kept_starts_over(open_house: OpenHouse) -> None:
    clock = ManualClock()
    async with open_house(clock, feed=Feed(tombstone_days=1)) as home:
        ann, bob = await home.people(2)
        book = await together(ann, bob)
        kept, doomed = await ann.makes_bill(book), await ann.makes_bill(book)
        away, other = Follower(bob), Follower(bob)
        await away.catch_up()
        await other.catch_up()
        await ann.ok("DELETE", f"/bills/{doomed['_id']}")
        clock.advance(3 * DAY)
        ann, bob = await home.back(ann), await home.back(bob)
        away.person = bob
        await home.app._sweep_feed()
        while await home.app.ledger._sweep():
            pass
        assert ("bill", doomed["_id"]) in away.rows
        await away.catch_up(limit=1)
        assert away.resets == 1
        assert [key for key in away.rows if key[0] == "bill"] == [("bill", kept["_id"])]
        await agrees(away)
        assert (await ann.ask("PUT", f"/bills/{doomed['_id']}", LUNCH)).json()["reason"] == "not_found"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "since=-1",
        "since=x",
        "since=1.5",
        f"since={2**63}",
        "since=0&limit=0",
        "since=0&epoch=" + "e" * 65,
    ],
)
async def test_a_wrong_pull_is_refused(quick_home: House, query: str) -> None:
    ann = await quick_home.person()
    assert (await ann.ask("GET", f"/sync/changes?{query}")).status_code == 400


async def test_compressed_pages_and_batches_are_understood(quick_home: House) -> None:
    import gzip

    ann = await quick_home.person()
    book = await ann.makes_book()
    operations = [create(new_id(), book["_id"]) for _ in range(60)]
    body = gzip.compress(msgspec.json.encode({"operations": operations}))
    said = await ann.ask("POST", "/sync/batch", content=body, headers={"Content-Encoding": "gzip"})
    assert [result["status"] for result in said.json()["data"]] == [201] * 60
    assert len((await ann.pulls(limit=1000))["bills"]) == 60


# -- batches


def create(id_: str, book_id: str, **fields: object) -> dict[str, Any]:
    return {"op": "create", "entity": "bill", "id": id_, "data": {**LUNCH, "book_id": book_id, **fields}}


async def batch(person: Person, *operations: dict[str, Any]) -> list[tuple[int, str | None]]:
    results = await person.ok("POST", "/sync/batch", {"operations": operations})
    return [(result["status"], result["reason"]) for result in results]


async def test_a_refused_operation_is_undone_alone(home: House) -> None:
    ann, bob = await home.people(2)
    book, foreign = await together(ann, bob), await bob.makes_book()
    his = await bob.makes_bill(book)
    first, second, third = new_id(), new_id(), new_id()
    assert await batch(
        ann,
        create(first, book["_id"]),
        create(second, foreign["_id"]),
        create(third, book["_id"], money="x"),
        create(first, book["_id"], money=1),
        {"op": "delete", "entity": "bill", "id": his["_id"]},
        {"op": "update", "entity": "bill", "id": first, "data": {**LUNCH, "money": 7}},
        {"op": "update", "entity": "bill", "id": "x", "data": LUNCH},
        {"op": "create", "entity": "image", "id": third, "data": {}},
        {"op": "update", "entity": "book", "id": book["_id"], "data": {**HOME, "name": "New"}},
        create(third, book["_id"]),
    ) == [
        (201, None), (404, "not_found"), (400, "invalid_field"), (409, "exists_mine"), (403, "forbidden"), (200, None),
        (400, "invalid_field"), (400, "invalid_field"), (200, None), (201, None),
    ]  # fmt: skip
    follower = Follower(bob)
    await follower.catch_up(limit=3)
    await agrees(follower)
    assert follower.rows["bill", first]["money"] == 7
    assert follower.rows["book", book["_id"]]["name"] == "New"


async def test_a_batch_makes_fills_changes_and_empties_books_in_order(home: House) -> None:
    ann = await home.person()
    follower = Follower(ann)
    book, bill = new_id(), new_id()
    made = {"op": "create", "entity": "book", "id": book, "data": HOME}
    gone = {"op": "delete", "entity": "book", "id": book}
    late = new_id()
    assert await batch(ann, create(bill, book), made, create(bill, book), gone, create(late, book), made, gone) == [
        (404, "not_found"), (201, None), (201, None), (200, None), (404, "deleted"), (404, "deleted"), (200, None),
    ]  # fmt: skip
    await follower.catch_up()
    await agrees(follower)
    assert follower.rows == {}


async def test_a_batch_sent_twice_answers_the_same(home: House) -> None:
    ann, bob = await home.people(2)
    old = await together(ann, bob)
    gone = await ann.makes_bill(old)
    book = new_id()
    operations = [
        {"op": "create", "entity": "book", "id": book, "data": HOME},
        *[create(new_id(), book, money=n) for n in range(20)],
        {"op": "delete", "entity": "bill", "id": gone["_id"]},
    ]
    import asyncio

    first, second = await asyncio.gather(
        *[ann.ok("POST", "/sync/batch", {"operations": operations}) for _ in range(2)]
    )
    assert first == second
    assert await ann.ok("POST", "/sync/batch", operations) == first, "a plain list is taken too"
    assert len(await shown(ann)) == 2 + 20


async def test_a_batch_has_its_limit(quick_home: House) -> None:
    ann = await quick_home.person()
    book = await ann.makes_book()
    operations = [create(new_id(), book["_id"]) for _ in range(501)]
    said = await ann.ask("POST", "/sync/batch", {"operations": operations})
    assert (said.status_code, said.json()["data"]["field"]) == (400, "operations")
    results = await ann.ok("POST", "/sync/batch", {"operations": operations[:500]})
    assert {result["status"] for result in results} == {201}
    versions = [result["data"]["version"] for result in results]
    assert versions == sorted(set(versions))
    assert await ann.ok("POST", "/sync/batch", {"operations": []}) == []


async def test_an_old_code_and_a_full_book_let_nobody_in(open_house: OpenHouse) -> None:
    from tests.ledger.house import UNLIMITED

    clock = ManualClock()
    limits = msgspec.structs.replace(UNLIMITED, members=2)
    async with open_house(clock, limits=limits) as home:
        ann, bob, cat = await home.people(3)
        book = await ann.makes_book()
        code = await ann.shares(book)
        await bob.joins(code)
        assert (await cat.ask("POST", "/books/join", {"code": code})).json()["reason"] == "book_full"
        await bob.leaves(book)
        clock.advance(7 * DAY)
        cat, ann = await home.back(cat), await home.back(ann)
        assert (await cat.ask("POST", "/books/join", {"code": code})).json()["reason"] == "unknown_code"
        assert await ann.shares(book) != code


async def test_guessing_codes_is_slow(open_house: OpenHouse) -> None:
    from holdfast.settings import Ledger

    async with open_house(ledger=Ledger(join_tries=3)) as home:
        ann = await home.person()
        answers = [(await ann.ask("POST", "/books/join", {"code": "AAAAAAAA"})).status_code for _ in range(5)]
        assert answers[:3] == [404] * 3
        assert answers[3:] == [429] * 2
