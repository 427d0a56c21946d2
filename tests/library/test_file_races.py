"""Upload, claim, push, delete and collection at random and all at once: never a living reference without its file, never
a file for nothing after the grace.

The room of blobs has its own races (tests/blobs/test_races.py); these are the library's rules on top of it, through its
doors. `HOLDFAST_RACES` is the number of races.
"""

from __future__ import annotations

import asyncio
import os
import random
from hashlib import sha256

import pytest

from holdfast.blobs import verify_blobs, verify_references
from holdfast.library import check
from holdfast.store import Snapshot
from tests.library.conftest import Device, House, create, score
from tests.library.pdfs import md5, pdf

RACES = int(os.environ.get("HOLDFAST_RACES", "4"))
GRACE_SECONDS = 24 * 3600
CONTENTS = [pdf(n, 2_000 + n) for n in range(3)]
STEPS = 14


class Violation(AssertionError):
    pass


class Player:
    """One device of one user, with up to three instrument scores."""

    def __init__(self, device: Device, choices: random.Random) -> None:
        self.device = device
        self.choices = choices
        self.version = 0
        self.parts: dict[str, tuple[int, bytes]] = {}

    async def begin(self) -> None:
        done = await self.device.push(0, scores=[score("s", "S")])
        self.version = done["newLibraryVersion"]

    async def step(self, house: House) -> None:
        content = self.choices.choice(CONTENTS)
        match self.choices.choice(
            ("upload", "upload", "claim", "push", "push", "push", "delete", "collect", "sweep")
        ):
            case "upload":
                await self.device.upload(content)
            case "claim":
                assert (await self.device.claim(content)).status_code in (200, 404, 409)
            case "push":
                await self.refer(content)
            case "delete":
                await self.delete()
            case "collect":
                await house.blobs.collector.collect()
            case _:
                await house.blobs.collector.sweep()
        await self.look()

    async def refer(self, content: bytes) -> None:
        await self.try_to_refer(self.choices.choice("abc"), content)

    async def refer_as(self, name: str, content: bytes) -> None:
        await self.try_to_refer(name, content)
        assert name in self.parts

    async def try_to_refer(self, name: str, content: bytes) -> None:
        change = create("instrumentScore", name, scoreId="S", instrumentName=name, pdfHash=md5(content))
        said = await self.device.push_raw(
            {"clientLibraryVersion": self.version, "instrumentScores": [change]}
        )
        if said.status_code == 200:
            self.version = said.json()["newLibraryVersion"]
            self.parts[name] = (said.json()["serverIdMapping"][name], content)
        else:
            assert (said.status_code, said.json()["reason"]) == (409, "file_missing"), said.text

    async def delete(self) -> None:
        if self.parts:
            await self.let_go(self.choices.choice(sorted(self.parts)))

    async def let_go(self, name: str) -> None:
        server_id, _ = self.parts.pop(name)
        done = await self.device.push(self.version, deletes=[f"instrumentScore:{server_id}"])
        self.version = done["newLibraryVersion"]

    async def look(self) -> None:
        for _, content in self.parts.values():
            said = await self.device.download(md5(content))
            if said.status_code != 200 or said.content != content:
                raise Violation(f"a living reference without its file: {said.status_code} {said.text[:100]}")


def problems(view: Snapshot, house: House) -> list[str]:
    return [
        *check.problems(view),
        *verify_references(view, check.references(view)),
        *(
            problem
            for problem in verify_blobs(
                view, house.blobs.place, now_ms=house.clock.now_ms(), grace_ms=10**15, deep=True
            )
            if "nobody keeps it" not in problem
        ),
    ]


@pytest.mark.parametrize("seed", range(RACES))
async def test_no_living_reference_is_ever_without_its_file_and_none_stays_for_nothing(
    house: House, seed: int
) -> None:
    players = [Player(house.device(user), random.Random(f"{seed} {user}")) for user in range(20, 25)]
    for player in players:
        await player.begin()

    async def play(player: Player) -> None:
        for _ in range(STEPS):
            await player.step(house)

    await asyncio.gather(*map(play, players))
    assert await house.db.read(problems, house) == []
    for player in players:
        await player.look()
        await player.device.push(
            player.version, deletes=[f"instrumentScore:{server_id}" for server_id, _ in player.parts.values()]
        )
    house.clock.advance(2 * GRACE_SECONDS)
    await house.blobs.collector.sweep()
    await house.blobs.collector.remove_strays()
    assert (house.files(), house.leftovers()) == ([], [])
    assert await house.db.read(problems, house) == []


async def test_a_reference_and_the_removal_of_the_last_one_meet_in_every_order(house: House) -> None:
    """One user lets go while another one, who has claimed the file, refers to it; and the collector runs."""
    content = pdf(9)
    hash_ = md5(content)
    ann, bob = Player(house.device(30), random.Random(0)), Player(house.device(31), random.Random(1))
    for player in (ann, bob):
        await player.begin()
    for round_ in range(30):
        await ann.device.upload(content)
        await ann.refer_as("x", content)
        assert (await bob.device.claim(content)).status_code == 200
        house.clock.advance((round_ % 2) * 2 * GRACE_SECONDS)  # in every other round the claim is over
        jobs = [
            ann.let_go("x"),
            bob.try_to_refer("y", content),
            house.blobs.collector.collect(),
            house.blobs.collector.sweep(),
        ]
        random.Random(round_).shuffle(jobs)
        await asyncio.gather(*jobs)
        await house.blobs.collector.collect()
        if "y" in bob.parts:
            await bob.look()
            await bob.let_go("y")
            await house.blobs.collector.collect()
        house.clock.advance(2 * GRACE_SECONDS)
        await house.blobs.collector.sweep()
        assert house.files() == []
        assert await house.db.read(problems, house) == []
    assert (await ann.device.download(hash_)).status_code == 404


async def test_the_proof_can_fail(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push that forgets to count is caught by `check`, and so is a file that is gone."""
    content = pdf(5)
    player = Player(house.device(40), random.Random(0))
    await player.begin()
    await player.device.upload(content)
    with monkeypatch.context() as patched:
        patched.setattr("holdfast.library.actions.adjust", lambda *_args, **_named: None)
        await player.refer_as("x", content)
    assert any("counts 0 references, there are 1" in each for each in await house.db.read(problems, house))
    house.clock.advance(2 * GRACE_SECONDS)
    await house.blobs.collector.sweep()
    with pytest.raises(Violation):
        await player.look()
    found = await house.db.read(problems, house)
    assert any(f"names the file {md5(content)}, which is not there" in each for each in found)


async def test_a_file_goes_on_being_sent_when_its_last_reference_goes_meanwhile(house: House) -> None:
    content = pdf(6, 1_000_000)
    player = Player(house.device(50), random.Random(0))
    await player.begin()
    await player.device.upload(content)
    await player.refer_as("x", content)
    download = await house.room.pdfs.open(50, md5(content))
    await player.let_go("x")
    await house.blobs.collector.collect()
    assert house.files() == []
    async with download:
        sent = b"".join([piece async for piece in download.stream()])
    assert sha256(sent).digest() == sha256(content).digest()
