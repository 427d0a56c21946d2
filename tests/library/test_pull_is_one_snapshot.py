"""The version is read in the same snapshot as the rows, while others push all the time."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Callable

import pytest
import zstandard

from holdfast.library import queries as sql
from tests.library.conftest import ANN, Device, House, Json, part, score, update, versions

SCORES = 120
PUSHES = 25


class Torn(AssertionError):
    pass


def look(found: Json) -> None:
    """Each push sets every score to its own number: a pull that mixes two of them is torn."""
    numbers = {item["data"]["n"] for item in found["scores"]}
    if len(numbers) > 1:
        raise Torn(f"rows of pushes {sorted(numbers)} in one answer")
    seen = versions(found).values()
    if seen and max(seen) != found["libraryVersion"]:
        raise Torn(f"rows up to {max(seen)} under version {found['libraryVersion']}")


async def race(house: House, pull: Callable[[int], Awaitable[Json]]) -> int:
    """Pushes beside readers, each of whom continues from what it saw last, until there were enough of both."""
    device = house.device()
    begun = await device.push(0, scores=[score(f"s{n}", f"s{n}", n=0) for n in range(SCORES)])
    ids = list(begun["serverIdMapping"].values())
    done = asyncio.Event()
    pulls = 0

    async def write() -> None:
        at = number = SCORES
        while number < SCORES + PUSHES or pulls < PUSHES:
            number += 1
            at = (await device.push(at, scores=[update("score", each, n=number) for each in ids]))[
                "newLibraryVersion"
            ]
        done.set()

    async def read(since: int) -> None:
        nonlocal pulls
        while not done.is_set():
            found = await pull(since)
            look(found)
            if since and found["scores"] and len(found["scores"]) != SCORES:
                raise Torn(f"{len(found['scores'])} of {SCORES} rows since {since}")
            since = found["libraryVersion"] if since else 0
            pulls += 1

    async with asyncio.TaskGroup() as racing:
        racing.create_task(write())
        for since in (0, 0, SCORES, SCORES):
            racing.create_task(read(since))
    return pulls


async def test_no_pull_is_torn_by_the_pushes_beside_it(house: House) -> None:
    assert await race(house, house.device().pull) >= PUSHES


async def test_the_proof_can_fail(house: House) -> None:
    """A pull that reads the version in one snapshot and the rows in the next one is caught."""

    async def torn(since: int) -> Json:
        version = await house.db.read(lambda view: view.row(sql.VERSION, user=ANN) or 0)
        await asyncio.sleep(0.005)
        rows = await house.db.read(lambda view: view.rows(sql.PAGE, user=ANN, after=since, limit=10_000))
        items = [
            {"entityType": "score", "serverId": row.id, "version": row.version, "data": json.loads(row.data)}
            for row in rows
        ]
        empty: Json = {"instrumentScores": [], "setlists": [], "setlistScores": []}
        return {"libraryVersion": version, "scores": items, **empty}

    with pytest.raises(ExceptionGroup) as caught:
        await race(house, torn)
    assert all(isinstance(error, Torn) for error in caught.value.exceptions)


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "identity"])
@pytest.mark.parametrize("scores", [3, 4_000], ids=["small", "large"])
async def test_a_pull_is_compressed_for_whoever_takes_that(ann: Device, encoding: str, scores: int) -> None:
    await ann.push(0, scores=[score(f"s{n}", x="y" * 300) for n in range(scores)])
    plain = await ann.pull()
    assert len(plain["scores"]) == scores
    async with ann.http.stream(
        "GET", "/library/pull", headers={**ann.headers, "Accept-Encoding": encoding}
    ) as said:
        raw = b"".join([piece async for piece in said.aiter_raw()])
    assert said.headers.get("content-encoding", "identity") == encoding
    unpack = {"gzip": gzip.decompress, "zstd": _unzstd, "identity": bytes}[encoding]
    assert json.loads(unpack(raw)) == plain
    if encoding != "identity":
        assert said.headers["vary"].lower() == "accept-encoding"
        assert len(raw) < len(unpack(raw)) / 2


def _unzstd(raw: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(raw)


async def test_a_compressed_push_is_taken_and_a_bomb_is_not(house: House, ann: Device) -> None:
    body = json.dumps({"clientLibraryVersion": 0, "scores": [score("s", "S")]}).encode()
    headers = {**ann.headers, "Content-Type": "application/json", "Content-Encoding": "gzip"}
    said = await house.http.post("/library/push", content=gzip.compress(body), headers=headers)
    assert (said.status_code, said.json()["accepted"]) == (200, ["S"])
    bomb = zlib.compressobj(9, wbits=31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(64)) + bomb.flush()
    said = await house.http.post("/library/push", content=packed, headers=headers)
    assert said.status_code == 413


async def test_an_answer_that_is_larger_than_memory_allows_waits_on_the_disk_and_is_whole(
    ann: Device,
) -> None:
    text = "x" * 500_000
    begun = await ann.push(0, scores=[score("s", "S")])
    for at in range(1, 9):
        big = part(begun["serverIdMapping"]["S"], f"p{at}", annotationsJson=f"{at}{text}")
        await ann.push(at, instrumentScores=[big])
    found = await ann.pull()
    assert [item["data"]["annotationsJson"][0] for item in found["instrumentScores"]] == list("12345678")
    assert all(len(item["data"]["annotationsJson"]) == 500_001 for item in found["instrumentScores"])
