"""Bills that are made many at once, in a batch or because many ask at the same moment, are made as if one by one."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.house import LUNCH, House, Person, new_id, together

MONEY = (1, 2.5)
BOOKS = ("ours", "mine", "theirs", "nobody's")

creates = st.tuples(st.just("create"), st.integers(0, 5), st.sampled_from(BOOKS), st.sampled_from(MONEY))
others = st.tuples(
    st.sampled_from(("update", "delete")), st.integers(0, 5), st.sampled_from(BOOKS), st.sampled_from(MONEY)
)
programs = st.lists(st.one_of(creates, creates, creates, others), min_size=1, max_size=25)
Program = list[tuple[str, int, str, float]]


class World:
    """The same for every run: ann has a book of her own and one with bob, who has one that she does not see."""

    def __init__(self, ann: Person, bob: Person) -> None:
        self.ann, self.bob = ann, bob
        self.books = {"nobody's": new_id()}
        self.bills = [new_id() for _ in range(6)]

    @classmethod
    async def made(cls, home: House) -> World:
        world = cls(*await home.people(2))
        world.books["ours"] = (await together(world.ann, world.bob))["_id"]
        world.books["mine"] = (await world.ann.makes_book())["_id"]
        world.books["theirs"] = (await world.bob.makes_book())["_id"]
        return world

    def operations(self, program: Program) -> list[dict[str, Any]]:
        return [
            {
                "op": op,
                "entity": "bill",
                "id": self.bills[bill],
                "data": {**LUNCH, "book_id": self.books[book], "money": money},
            }
            for op, bill, book, money in program
        ]

    def named(self, result: dict[str, Any]) -> dict[str, Any]:
        """Without what is another each time: ids get their places, times and versions go."""
        names = {id_: name for name, id_ in self.books.items()}
        names.update({id_: f"bill {number}" for number, id_ in enumerate(self.bills)})
        names.update({self.ann.id: "ann", self.bob.id: "bob"})
        data = result["data"] or {}
        kept = {key: value for key, value in data.items() if key not in ("version", "crt_time", "upd_time")}
        shown = {
            key: names.get(value, value) if isinstance(value, str) else value for key, value in kept.items()
        }
        return {**result, "data": shown}

    async def one_by_one(self, program: Program) -> list[dict[str, Any]]:
        found = [await self.ann.ok("POST", "/sync/batch", [one]) for one in self.operations(program)]
        return [self.named(result) for (result,) in found]

    async def in_a_batch(self, program: Program) -> list[dict[str, Any]]:
        found = await self.ann.ok("POST", "/sync/batch", self.operations(program))
        return [self.named(result) for result in found]


async def adds_up(person: Person) -> None:
    """What the person pulls is what the server's checksum says."""
    page = await person.pulls(limit=1_000)
    assert not page["has_more"]
    digest = 0
    rows = [(kind, row) for kind in ("book", "bill") for row in page[f"{kind}s"] if row["action"] != "delete"]
    for kind, row in rows:
        text = f"{kind}\n{row['_id']}\n{row['upd_time']}"
        digest += int.from_bytes(sha256(text.encode()).digest()[:8])
    checksum = await person.checksum()
    assert checksum["count"] == len(rows)
    assert checksum["digest"] == f"{digest % 2**64:016x}"
    assert len({row["version"] for _, row in rows}) == len(rows)


async def same_either_way(home: House, program: Program) -> None:
    first, second = await World.made(home), await World.made(home)
    assert await first.one_by_one(program) == await second.in_a_batch(program)
    for world in (first, second):
        await adds_up(world.ann)
        await adds_up(world.bob)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(programs)
async def test_a_batch_comes_to_what_its_operations_come_to_one_by_one(
    quick_home: House, program: Program
) -> None:
    await same_either_way(quick_home, program)


async def test_on_both_databases_a_batch_comes_to_the_same(home: House) -> None:
    await same_either_way(
        home,
        [
            ("create", 0, "ours", 1),
            ("create", 1, "mine", 1),
            ("create", 0, "ours", 1),
            ("create", 0, "ours", 2.5),
            ("create", 1, "ours", 1),
            ("create", 2, "theirs", 1),
            ("create", 3, "nobody's", 1),
            ("update", 1, "mine", 2.5),
            ("create", 1, "mine", 1),
            ("delete", 0, "ours", 1),
            ("create", 0, "ours", 1),
            ("create", 4, "mine", 2.5),
        ],
    )


@pytest.mark.parametrize("count", [60])
async def test_bills_that_many_make_at_the_same_moment_each_have_a_place_of_their_own(
    home: House, count: int
) -> None:
    """Half of them twice, some of them by the wrong person: everybody has an answer of his own."""
    ann, bob, eve = await home.people(3)
    book = await together(ann, bob)
    ids = [new_id() for _ in range(count)]
    asked = [(who, id_) for n, id_ in enumerate(ids) for who in ((ann, bob)[n % 2],) * (1 + n % 3 // 2)]
    asked += [(eve, new_id()) for _ in range(10)]
    answers = await asyncio.gather(
        *(who.ask("POST", "/bills/", {**LUNCH, "_id": id_, "book_id": book["_id"]}) for who, id_ in asked)
    )
    for (who, id_), answer in zip(asked, answers, strict=True):
        if who is eve:
            assert answer.status_code == 404
            continue
        assert answer.status_code == 201, answer.text
        assert answer.json()["data"]["_id"] == id_
        assert answer.json()["data"]["crt_user"] == who.id
    for who in (ann, bob):
        await adds_up(who)
        assert {bill["_id"] for bill in (await who.pulls(limit=1_000))["bills"]} == set(ids)
    versions = {answer.json()["data"]["version"] for answer in answers if answer.status_code == 201}
    assert len(versions) == count
