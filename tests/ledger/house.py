"""A whole server in this process, and the people who use it over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from holdfast.app import App
from holdfast.clock import Clock, SystemClock
from holdfast.ids import XidMaker
from holdfast.settings import Auth, Ledger, Limits, Listen, Log, Settings, Store

PASSWORD = "correct horse"
UNLIMITED = Limits(library_requests=10**9, requests=10**9, anonymous_requests=10**9)
LUNCH = {"money": 50.5, "type": 1, "category": "午餐", "time": "2026-02-18"}
HOME = {"name": "Our home", "type": "daily"}

new_id = XidMaker(SystemClock())


def settings_for(folder: Path, url: str = "", **changes: object) -> Settings:
    """Everything on free ports, nobody limited, passwords that cost nothing."""
    settings = Settings(
        data=str(folder),
        listen=Listen(http="127.0.0.1:0", mqtt="127.0.0.1:0", ws="127.0.0.1:0", mqtt_ws="127.0.0.1:0"),
        store=Store(url=url),
        auth=Auth(argon2_memory_kib=8, argon2_passes=1),
        ledger=Ledger(join_tries=10**6),
        limits=UNLIMITED,
        log=Log(level="error"),
    )
    return msgspec.structs.replace(settings, **changes)


class Refused(AssertionError):
    """The server said no."""

    def __init__(self, said: httpx.Response) -> None:
        super().__init__(f"{said.request.method} {said.request.url}: {said.status_code} {said.text}")
        body = said.json() if said.content else {}
        self.status = said.status_code
        self.reason: str | None = body.get("reason")
        self.data: Any = body.get("data")

    @property
    def why(self) -> tuple[int, str | None]:
        return self.status, self.reason


class Person:
    """Somebody on one device."""

    def __init__(self, user_id: int, name: str, token: str | None, http: httpx.AsyncClient) -> None:
        self.user_id = user_id
        self.id = str(user_id)
        self.name = name
        self.token = token
        self._http = http

    async def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        """Any request under /api/v1, and whatever is answered."""
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            more["content"] = msgspec.json.encode(body)
        return await self._http.request(
            method, f"/api/v1{path}", headers={**authorization, **(headers or {})}, **more
        )

    async def ok(self, method: str, path: str, body: object = None, **more: Any) -> Any:
        """The answer's data; what is neither 200 nor 201 raises `Refused`."""
        said = await self.ask(method, path, body, **more)
        if said.status_code not in (200, 201):
            raise Refused(said)
        return said.json()["data"]

    # -- what people do most

    async def makes_book(self, **fields: object) -> Any:
        return await self.ok("POST", "/books/", {"_id": new_id(), **HOME, **fields})

    async def makes_bill(self, book: Any, **fields: object) -> Any:
        return await self.ok("POST", "/bills/", {"_id": new_id(), "book_id": book["_id"], **LUNCH, **fields})

    async def shares(self, book: Any) -> str:
        code: str = (await self.ok("POST", f"/books/{book['_id']}/share"))["code"]
        return code

    async def joins(self, code: str) -> Any:
        return await self.ok("POST", "/books/join", {"code": code})

    async def leaves(self, book: Any) -> Any:
        return await self.ok("DELETE", f"/books/{book['_id']}/members/{self.id}")

    async def removes(self, book: Any, who: Person) -> Any:
        return await self.ok("DELETE", f"/books/{book['_id']}/members/{who.id}")

    async def adds_image(self, bill: Any, content: bytes, **fields: str) -> Any:
        files = {"file": ("photo.bin", content, "application/octet-stream")}
        return await self.ok("POST", "/images/upload", data={"bill_id": bill["_id"], **fields}, files=files)

    async def pulls(self, since: int = 0, **query: object) -> Any:
        return await self.ok("GET", "/sync/changes", params={"since": since, **query})

    async def checksum(self) -> Any:
        return await self.ok("GET", "/sync/checksum")


class House:
    def __init__(self, app: App, http: httpx.AsyncClient) -> None:
        self.app = app
        self.http = http
        self._people = 0

    async def person(self, name: str | None = None) -> Person:
        self._people += 1
        name = name or f"person{self._people}"
        user = await self.app.accounts.add_user(name, PASSWORD)
        return Person(user.id, name, await self.app.accounts.access_token_for(user), self.http)

    async def people(self, count: int) -> list[Person]:
        return [await self.person() for _ in range(count)]

    async def back(self, person: Person) -> Person:
        """The same person after a restart."""
        user = await self.app.accounts.user_named(person.id)
        return Person(user.id, user.name, await self.app.accounts.access_token_for(user), self.http)

    def nobody(self, token: str | None = None) -> Person:
        return Person(0, "nobody", token, self.http)


@asynccontextmanager
async def house(settings: Settings, clock: Clock | None = None) -> AsyncIterator[House]:
    app = App(settings, clock)
    await app.start()
    try:
        async with httpx.AsyncClient(base_url=f"http://{app.addresses['http']}", timeout=30) as http:
            yield House(app, http)
    finally:
        await app.stop()


async def together(*people: Person) -> Any:
    """A book of the first, which all the others have joined."""
    first, *others = people
    book = await first.makes_book()
    if others:
        code = await first.shares(book)
        for other in others:
            book = await other.joins(code)
    return book
