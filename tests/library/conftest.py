"""A whole library door on a real store: accounts that cost nothing, a clock that tests move."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from holdfast.blobs import BlobRoom
from holdfast.blobs.model import hash_in_name
from holdfast.clock import ManualClock
from holdfast.errors import InvalidToken
from holdfast.http.door import Door
from holdfast.http.routes import application
from holdfast.http.visit import Caller
from holdfast.library.room import LibraryRoom
from holdfast.log import configure, reset
from holdfast.metrics import Metrics
from holdfast.settings import Log, Settings
from holdfast.store import Database
from holdfast.store.migrations import of_rooms
from tests.conftest import OpenStore
from tests.library.pdfs import md5

MIGRATIONS = of_rooms("store", "http", "feed", "blobs", "library")
ANN, BOB = 7, 8
UNLIMITED = msgspec.convert(
    {"limits": {"library_requests": 10**9, "requests": 10**9, "anonymous_requests": 10**9}}, Settings
)

Json = dict[str, Any]
_uuids = count(1)


class Person(msgspec.Struct, frozen=True):
    user_id: int
    is_admin: bool = False


class Doormen:
    """A token is the user's number."""

    def known(self, token: str) -> Caller | None:
        return Person(int(token)) if token.isdigit() else None

    async def verify(self, token: str) -> Caller:
        raise InvalidToken


class Device:
    """One device of one user, as it speaks to the server."""

    def __init__(self, http: httpx.AsyncClient, user: int) -> None:
        self.http = http
        self.user = user
        self.headers = {"Authorization": f"Bearer {user}"}

    async def pull(self, since: int = 0, **parameters: object) -> Json:
        asked = {"userId": self.user, "since": since, **parameters}
        said = await self.http.get("/library/pull", params=asked, headers=self.headers)  # type: ignore[arg-type]
        assert said.status_code == 200, said.text
        found: Json = said.json()
        return found

    async def push_raw(self, body: object, headers: Mapping[str, str] = {}) -> httpx.Response:
        return await self.http.post(
            "/library/push",
            params={"userId": self.user},
            headers={**self.headers, "Content-Type": "application/json", **headers},
            content=msgspec.json.encode(body),
        )

    async def push(self, at: int, headers: Mapping[str, str] = {}, **arrays: object) -> Json:
        said = await self.push_raw({"clientLibraryVersion": at, **arrays}, headers)
        assert said.status_code == 200, said.text
        answer: Json = said.json()
        assert (answer["success"], answer["conflict"]) == (True, False)
        return answer

    async def refused(
        self, status: int, reason: str, at: int, headers: Mapping[str, str] = {}, **arrays: object
    ) -> Json:
        said = await self.push_raw({"clientLibraryVersion": at, **arrays}, headers)
        assert (said.status_code, said.json()["reason"]) == (status, reason), said.text
        answer: Json = said.json()
        assert answer["success"] is False
        assert answer["code"] // 100 == status
        return answer

    # -- files

    async def get(self, path: str, headers: Mapping[str, str] = {}, **parameters: str) -> httpx.Response:
        return await self.http.get(path, params=parameters, headers={**self.headers, **headers})

    async def known(self, hash_: str) -> Json:
        said = await self.get("/file/checkHash", hash=hash_)
        assert said.status_code == 200, said.text
        found: Json = said.json()
        return found

    async def upload(self, content: bytes) -> str:
        said = await self.upload_raw(content)
        assert said.status_code == 200, said.text
        found: Json = said.json()
        assert found == {"hash": md5(content), "path": f"{md5(content)}.pdf"}
        return md5(content)

    async def upload_raw(self, content: bytes, content_type: str = "application/pdf") -> httpx.Response:
        headers = {**self.headers, "Content-Type": content_type}
        return await self.http.post("/file/upload", content=content, headers=headers)

    async def claim_raw(self, **body: str) -> httpx.Response:
        return await self.http.post("/file/claim", json=body, headers=self.headers)

    async def claim(self, content: bytes) -> httpx.Response:
        """Proves possession of `content`, as far as this device has it."""
        asked = await self.claim_raw(hash=md5(content))
        if asked.status_code != 200:
            return asked
        question = asked.json()
        begin, length = question["offset"], question["length"]
        answer = sha256(question["nonce"].encode() + content[begin : begin + length]).hexdigest()
        return await self.claim_raw(claimId=question["claimId"], sha256=answer)

    async def download(self, hash_: str, headers: Mapping[str, str] = {}) -> httpx.Response:
        return await self.get("/file/download", headers, hash=hash_)


class House:
    """The room on a database, its doors, its files."""

    def __init__(
        self, db: Database, folder: Path, clock: ManualClock, settings: Settings, metrics: Metrics
    ) -> None:
        self.db = db
        self.clock = clock
        self.folder = folder
        self.metrics = metrics
        self.blobs = BlobRoom(db, folder / "blobs", clock, settings.blobs, self.metrics)
        self.room = LibraryRoom(db, self.blobs, clock, settings, self.metrics)
        routes = application(self.room.routers(), settings.limits)
        self.door = Door(routes, Doormen(), clock, self.metrics, settings.http, settings.limits)
        transport = httpx.ASGITransport(self.door)  # type: ignore[arg-type]
        self.http = httpx.AsyncClient(transport=transport, base_url="http://holdfast", timeout=60)

    def device(self, user: int = ANN) -> Device:
        return Device(self.http, user)

    def files(self) -> list[str]:
        """What is kept, by SHA-256."""
        return sorted(hash_in_name(kept.name) or kept.name for kept in self.blobs.place.listing())

    def leftovers(self) -> list[str]:
        incoming = self.folder / "blobs" / "incoming"
        return sorted(path.name for path in incoming.iterdir()) if incoming.exists() else []


@pytest.fixture(autouse=True)
def _short_logs() -> Iterator[None]:
    """Without it each provoked mistake is printed with all its variables."""
    configure(Log(format="json"), sys.stdout)
    yield
    reset()


OpenHouse = Callable[..., AbstractAsyncContextManager[House]]


@asynccontextmanager
async def opened(
    open_store: OpenStore, folder: Path, clock: ManualClock, settings: Settings
) -> AsyncIterator[House]:
    metrics = Metrics()
    async with open_store(MIGRATIONS, metrics=metrics) as db:
        house = House(db, folder, clock, settings, metrics)
        await house.room.start()
        try:
            yield house
        finally:
            await house.http.aclose()
            await house.room.stop()
            await house.blobs.files.stop()


@pytest.fixture
def open_house(open_store: OpenStore, tmp_path: Path) -> OpenHouse:
    """Without the collector's background task: tests sweep when they want to."""
    clock = ManualClock()
    return lambda settings=UNLIMITED: opened(open_store, tmp_path, clock, settings)


@pytest.fixture
async def house(open_house: OpenHouse) -> AsyncIterator[House]:
    async with open_house() as here:
        yield here


@pytest.fixture
def ann(house: House) -> Device:
    return house.device(ANN)


@pytest.fixture
def bob(house: House) -> Device:
    return house.device(BOB)


# -- changes, as clients write them


def change(kind: str, operation: str, server_id: int | None, name: str | None, data: object) -> Json:
    made: Json = {
        "entityType": kind,
        "entityId": name or f"uuid-{next(_uuids)}",
        "operation": operation,
        "version": 0,
        "data": data,
        "localUpdatedAt": "2026-02-18T06:00:00.000Z",
    }
    return made if server_id is None else made | {"serverId": server_id}


def create(kind: str, name: str | None = None, /, **data: object) -> Json:
    return change(kind, "create", None, name, data)


def update(kind: str, server_id: int, name: str | None = None, /, **data: object) -> Json:
    return change(kind, "update", server_id, name, data)


def score(title: str, name: str | None = None, /, **data: object) -> Json:
    return create("score", name, title=title, **data)


def part(score_id: int | str, instrument: str, name: str | None = None, /, **data: object) -> Json:
    return create("instrumentScore", name, scoreId=score_id, instrumentName=instrument, **data)


def setlist(title: str, name: str | None = None, /, **data: object) -> Json:
    return create("setlist", name, name=title, **data)


def entry(setlist_id: int | str, score_id: int | str, name: str | None = None, /, **data: object) -> Json:
    return create("setlistScore", name, setlistId=setlist_id, scoreId=score_id, orderIndex=0, **data)


def versions(pulled: Json) -> dict[str, int]:
    """`score:3` → its version."""
    return {
        f"{item['entityType']}:{item['serverId']}": item["version"]
        for kind in ("scores", "instrumentScores", "setlists", "setlistScores")
        for item in pulled[kind]
    }
