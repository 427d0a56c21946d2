"""Libraries: devices that push, with PDFs, and the proof that each push is there as it was acknowledged or not at all.

One device for each library, so that nobody else moves its version: what a library holds is then known to the row.
A push of unknown fate is looked at before it is sent again under its Idempotency-Key.
"""

from __future__ import annotations

import asyncio
from random import Random

import msgspec

from tests.faults.operations import Doors, Figures, Lost
from tests.faults.wire import Answered, Cut, Wire
from tests.library.conftest import Json
from tests.library.offline import ARRAYS, Truth
from tests.library.pdfs import md5, pdf

PASSWORD = "correct horse"
AWAY_SECONDS = 0.02
SEND_AGAIN = 0.1
PDFS = [pdf(seed, 40_000) for seed in range(4)]


class Waiting(msgspec.Struct):
    """A push that was sent, and whose answer was not heard."""

    key: str
    body: Json


class Shelf:
    """One library and the device that fills it."""

    def __init__(self, name: str, random: Random, figures: Figures) -> None:
        self.name = name
        self._random = random
        self._figures = figures
        self._truth = Truth()
        self._waiting: Waiting | None = None
        self._last: tuple[Waiting, Json] | None = None
        self._numbers = 0
        self._token = ""

    # -- load

    async def work(self, address: str) -> None:
        async with Wire(address) as wire:
            while True:
                try:
                    await self._log_in(wire)
                    await self._step(wire)
                except Cut:
                    self._figures.unknown += self._waiting is not None
                    await asyncio.sleep(AWAY_SECONDS)

    async def _log_in(self, wire: Wire) -> None:
        if wire.token is not None:
            return
        account = {"username": self.name, "password": PASSWORD}
        while True:
            await wire.post("/auth/register", account)
            said = await wire.post("/auth/login", account)
            if said.status == 200:
                wire.token = msgspec.json.decode(said.body)["data"]["accessToken"]
                return
            _expect(said, 503, 409, 401)
            await asyncio.sleep(AWAY_SECONDS)

    async def _step(self, wire: Wire) -> None:
        if self._waiting is None and self._last is not None and self._random.random() < SEND_AGAIN:
            await self._once_more(wire)
            return
        if self._waiting is None:
            self._waiting = await self._new(wire)
        if self._waiting is not None:
            await self._send(wire)

    async def _new(self, wire: Wire) -> Waiting | None:
        """A push of some changes, one of which may name a PDF that was uploaded just before."""
        hash_ = None
        if self._random.random() < 0.3:
            content = self._random.choice(PDFS)
            said = await wire.upload("/file/upload", content)
            if said.status != 200:
                _expect(said, 503)
                return None
            hash_ = md5(content)
        self._numbers += 1
        return Waiting(f"{self.name}-{self._numbers}", self._body(hash_))

    def _body(self, hash_: str | None) -> Json:
        number, random, truth = self._numbers, self._random, self._truth
        part: Json = {"scoreId": f"s{number}", "instrumentName": "Violin"}
        if hash_ is not None:
            part["pdfHash"] = hash_
        body: Json = {
            "clientLibraryVersion": truth.version,
            "scores": [_create(f"s{number}", title=f"score {number}", note="x" * random.randrange(400))],
            "instrumentScores": [_create(f"p{number}", **part)],
            "setlists": [_create(f"l{number}", name=f"list {number}")],
            "setlistScores": [_create(f"e{number}", setlistId=f"l{number}", scoreId=f"s{number}")],
            "deletes": [],
        }
        scores = [server_id for server_id, row in truth.rows.items() if row.kind == "score"]
        living = [server_id for server_id in scores if truth.rows[server_id].is_live]
        for server_id in random.sample(scores, min(2, len(scores))):
            change = _create(f"u{server_id}", changed=number) | {"operation": "update", "serverId": server_id}
            body["scores"].append(change)
        if len(living) > 10:
            body["deletes"] = [f"score:{server_id}" for server_id in random.sample(living, 2)]
        return body

    async def _send(self, wire: Wire) -> None:
        assert self._waiting is not None
        waiting = self._waiting
        said = await wire.post("/library/push", waiting.body, key=waiting.key)
        if said.status == 503:
            self._figures.unknown += 1
            await asyncio.sleep(AWAY_SECONDS)
            return
        if said.status == 409 and b"file_missing" in said.body:
            self._waiting = None  # its claim was not renewed in time: nothing happened
            return
        _expect(said, 200)
        answer: Json = msgspec.json.decode(said.body)
        self._truth.accept(waiting.body, answer)
        self._waiting, self._last = None, (waiting, answer)
        self._figures.acknowledged += 1

    async def _once_more(self, wire: Wire) -> None:
        assert self._last is not None
        waiting, answer = self._last
        said = await wire.post("/library/push", waiting.body, key=waiting.key)
        if said.status == 503:
            return
        _expect(said, 200)
        if msgspec.json.decode(said.body) != answer:
            raise Lost(f"{waiting.key} was answered otherwise the second time: {said.body!r}")
        self._figures.replayed += 1

    # -- proof

    async def verify(self, address: str) -> None:
        async with Wire(address) as wire:
            await self._log_in(wire)
            found = await self._pull(wire)
            if self._waiting is not None:
                await self._settle(wire, found["libraryVersion"])
                found = await self._pull(wire)
            self._compare(found)
            await self._read_files(wire, found)

    async def _pull(self, wire: Wire) -> Json:
        said = await wire.get("/library/pull")
        _expect(said, 200)
        found: Json = msgspec.json.decode(said.body)
        return found

    async def _settle(self, wire: Wire, version: int) -> None:
        """All of the push of unknown fate is there, or nothing; then it is sent again, and answered in any case."""
        assert self._waiting is not None
        before = self._truth.version
        await self._send(wire)
        if self._waiting is None and version not in (before, self._truth.version):
            raise Lost(
                f"{self.name}: half a push: version {version} between {before} and {self._truth.version}"
            )

    def _compare(self, found: Json) -> None:
        if found["libraryVersion"] != self._truth.version or not self._truth.is_complete:
            raise Lost(f"{self.name}: version {found['libraryVersion']}, acknowledged {self._truth.version}")
        there = {
            item["serverId"]: (item["entityType"], not item["isDeleted"], item["data"])
            for array in ARRAYS.values()
            for item in found[array]
        }
        expected = self._truth.copy()
        for server_id in there.keys() | expected.keys():
            if there.get(server_id) != expected.get(server_id):
                raise Lost(
                    f"{self.name}: {server_id} is {there.get(server_id)}, not {expected.get(server_id)}"
                )

    async def _read_files(self, wire: Wire, found: Json) -> None:
        parts = [item["data"] for item in found["instrumentScores"] if not item["isDeleted"]]
        for hash_ in {part["pdfHash"] for part in parts if "pdfHash" in part}:
            said = await wire.get(f"/file/download?hash={hash_}")
            if said.status != 200 or md5(said.body) != hash_:
                raise Lost(f"{self.name}: a living reference to {hash_} without its file: {said.status}")


class Libraries:
    """Some devices, each with a library of its own."""

    def __init__(self, seed: int, devices: int = 6) -> None:
        self.figures = Figures()
        random = Random(seed)
        self._shelves = [
            Shelf(f"reader{number}", Random(random.random()), self.figures) for number in range(devices)
        ]

    async def work(self, doors: Doors) -> None:
        async with asyncio.TaskGroup() as devices:
            for shelf in self._shelves:
                devices.create_task(shelf.work(doors["http"]))

    async def verify(self, doors: Doors) -> None:
        for shelf in self._shelves:
            await shelf.verify(doors["http"])


def _create(entity_id: str, /, **data: object) -> Json:
    return {"entityId": entity_id, "operation": "create", "data": data}


def _expect(said: Answered, *allowed: int) -> None:
    if said.status not in allowed:
        raise Lost(f"an answer that nobody expected: {said.status} {said.body[:300]!r}")
