"""All of a push or nothing: wherever it fails, and whoever pushes beside it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from holdfast.store import Query, Statement, Transaction
from tests.library.conftest import Device, House, Json, create, entry, part, score, setlist, update, versions
from tests.library.pdfs import md5, pdf

CHANGES = 200
TABLES = (
    "library",
    "library_entity",
    "library_alias",
    "library_possession",
    "http_idempotency",
    "blob",
    "blob_claim",
)


async def everything(house: House) -> dict[str, list[object]]:
    """Every row of every table that a push writes."""

    def read(view: Transaction) -> dict[str, list[object]]:
        return {
            table: sorted(map(repr, view.rows(Query(tuple[object, ...], f"SELECT * FROM {table}"))))
            for table in TABLES
        }

    return await house.db.read(read)


def two_hundred(hash_: str, existing: dict[str, int]) -> dict[str, list[Json]]:
    """50 of each kind: new ones, updates, revivals, moves; and deletions beside them."""
    return {
        "scores": [score(f"new {n}", f"S{n}") for n in range(25)]
        + [update("score", existing[f"s{n}"], title=f"renamed {n}") for n in range(25)],
        "instrumentScores": [part(f"S{n}", "Violin", f"I{n}", pdfHash=hash_) for n in range(25)]
        + [part(existing[f"s{n}"], "Oboe") for n in range(25)],
        "setlists": [setlist(f"list {n}", f"L{n}") for n in range(50)],
        "setlistScores": [entry(f"L{n}", f"S{n % 25}") for n in range(40)],
        "deletes": [f"score:{existing[f's{n}']}" for n in range(25, 35)],
    }


async def prepared(ann: Device) -> tuple[str, dict[str, int], int]:
    hash_ = await ann.upload(pdf())
    begun = await ann.push(
        0,
        scores=[score(f"s{n}", f"s{n}") for n in range(35)] + [score("taken")],
        instrumentScores=[part(f"s{n}", "Viola", f"i{n}", pdfHash=hash_) for n in range(35)],
    )
    return hash_, begun["serverIdMapping"], 71


def broken(push: dict[str, list[Json]], position: int) -> tuple[dict[str, list[Json]], str]:
    """The same push, whose change (or deletion) at `position` can only be refused, and what it is called."""
    copy = {name: list(items) for name, items in push.items()}
    for name, items in copy.items():
        if position < len(items):
            if name == "deletes":
                items[position] = "bad"
            else:
                items[position] = _bad(name, items[position])
            return copy, "bad"
        position -= len(items)
    raise IndexError(position)


def _bad(name: str, was: Json) -> Json:
    """Refused by the rules of one row, by the other rows, or by the files: each kind in its own way."""
    data = dict(was["data"])
    if name == "instrumentScores":
        data["pdfHash"] = md5(b"nowhere")
    elif name == "scores" and "serverId" in was:
        data["title"] = "taken"
    else:
        data = {key: 5 if key in ("title", "name") else "" for key in data}
    return was | {"entityId": "bad", "data": data}


async def test_a_push_of_200_changes_that_fails_at_each_position_in_turn_leaves_nothing(
    house: House, ann: Device
) -> None:
    hash_, existing, at = await prepared(ann)
    push = two_hundred(hash_, existing)
    assert sum(map(len, push.values())) == CHANGES
    before = await everything(house)
    for position in range(CHANGES):
        bad, name = broken(push, position)
        said = await ann.push_raw({"clientLibraryVersion": at, **bad}, {"Idempotency-Key": f"k{position}"})
        assert said.status_code in (400, 409), (position, said.text)
        assert said.json()["entityId"] == name, (position, said.text)
    assert await everything(house) == before
    done = await ann.push(at, **push)
    assert done["newLibraryVersion"] == at + CHANGES + 10  # ten of the deleted scores have a Viola


STATEMENTS = ("execute", "rows", "row")


@pytest.mark.parametrize("method", STATEMENTS)
async def test_a_push_whose_every_statement_fails_in_turn_leaves_nothing(
    house: House, ann: Device, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    hash_, existing, at = await prepared(ann)
    push = two_hundred(hash_, existing)
    before = await everything(house)
    kind = type(await _transaction(house))
    real: Callable[..., object] = getattr(kind, method)
    failed = 0
    while True:
        calls = 0

        def failing(self: Transaction, statement: Statement, **parameters: object) -> object:
            nonlocal calls
            if "library" in statement.sqlite or "blob" in statement.sqlite:
                calls += 1
                if calls == failed + 1:  # noqa: B023 - used up before the next round
                    real(self, statement, **parameters)
                    raise RuntimeError("the machine trips here")
            return real(self, statement, **parameters)

        with monkeypatch.context() as patched:
            patched.setattr(kind, method, failing)
            said = await ann.push_raw({"clientLibraryVersion": at, **push}, {"Idempotency-Key": f"k{failed}"})
        if said.status_code == 200:
            break
        assert said.status_code == 500
        assert await everything(house) == before
        failed += 1
    assert failed >= {"execute": 4, "rows": 6, "row": 1}[method]


async def _transaction(house: House) -> Transaction:
    found: list[Transaction] = []
    await house.db.write(found.append)
    return found[0]


async def test_of_two_devices_that_push_at_once_one_wins_and_the_other_succeeds_after_a_pull(
    ann: Device,
) -> None:
    for round_ in range(20):
        at = (await ann.pull())["libraryVersion"]
        bodies = [[score(f"{round_} {device}", f"{round_}-{device}")] for device in ("phone", "tablet")]
        said = await asyncio.gather(
            *(ann.push_raw({"clientLibraryVersion": at, "scores": body}) for body in bodies)
        )
        assert sorted(answer.status_code for answer in said) == [200, 412]
        loser = bodies[[answer.status_code for answer in said].index(412)]
        found = await ann.pull(at)
        assert len(found["scores"]) == 1
        await ann.push(found["libraryVersion"], scores=loser)
    assert len((await ann.pull())["scores"]) == 40


async def test_pushes_of_many_users_at_once_do_not_wait_for_each_other_for_ever(house: House) -> None:
    """They share one file, so they meet at its row; in the order of locks nobody waits in a circle."""
    contents = [pdf(n) for n in range(4)]

    async def one(user: int) -> None:
        device, choices = house.device(user), random.Random(user)
        for content in contents:
            await device.upload(content)
        at = 0
        for number in range(4):
            chosen = choices.sample(contents, 3)
            done = await device.push(
                at,
                scores=[score("s", "S")],
                instrumentScores=[
                    create(
                        "instrumentScore",
                        f"I{slot}",
                        scoreId="S",
                        instrumentName=f"part {slot}",
                        pdfHash=md5(content),
                        n=number,
                    )
                    for slot, content in enumerate(chosen)
                ],
            )
            at = done["newLibraryVersion"]

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(user) for user in range(100, 112)))
    assert "holdfast_store_retries_total 0.0" in house.metrics.exposition().decode()


async def test_versions_are_dense_over_pushes(ann: Device) -> None:
    at = 0
    for number in range(5):
        done = await ann.push(at, scores=[score(f"{number} {n}") for n in range(number + 1)])
        assert done["newLibraryVersion"] == at + number + 1
        at = done["newLibraryVersion"]
    assert sorted(versions(await ann.pull()).values()) == list(range(1, at + 1))
