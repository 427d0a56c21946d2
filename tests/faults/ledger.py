"""The ledger under the storm: people write over HTTP, in batches and over the uplink, and one of them listens.

What must be there is known from what was acknowledged: a bill's money is its number, in the book that it was sent to. The
listener remembers every notification; after each start, each must speak of something that is committed: nothing may be
told to anybody that the server can forget.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import aiomqtt
import msgspec

from holdfast.clock import SystemClock
from holdfast.ids import XidMaker
from tests.faults.operations import Doors, Figures, Lost
from tests.faults.wire import Answered, Cut, Wire

PASSWORD = "correct horse"
PEOPLE = 3
BOOKS = 3
SEND_AGAIN = 0.2
AWAY_SECONDS = 0.02
BATCH = 25

new_id = XidMaker(SystemClock())


class Sent(msgspec.Struct, frozen=True):
    """A bill as it was asked for; its content follows from its number."""

    id: str
    book: str
    number: int

    @property
    def body(self) -> dict[str, Any]:
        return {
            "_id": self.id, "book_id": self.book, "money": self.number, "type": 1,
            "category": f"bill {self.number}", "time": "2026-02-18",
        }  # fmt: skip


class Person:
    def __init__(self, name: str) -> None:
        self.name = name
        self.id = ""
        self.token = ""


def end_if_cancelled() -> None:
    """A client that is cancelled, and meets a closed connection on its way out, hears of the connection alone."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class LedgerOperations:
    def __init__(self, seed: int, clients: int = 12) -> None:
        self.figures = Figures()
        self._random = Random(seed)
        self._clients = clients
        self._people = [Person(f"person{number}") for number in range(PEOPLE)]
        self._books: list[str] = []
        self._next = 0
        self._versions: dict[str, int] = {}
        """What was acknowledged: a bill's id, and the version it got."""
        self._acknowledged: list[Sent] = []
        self._unknown: dict[str, Sent] = {}
        self._told: dict[str, int] = {}
        """What members were told of: a bill's id, and the version that they were told."""

    # -- load

    async def work(self, doors: Doors) -> None:
        await self._settle(doors)
        async with asyncio.TaskGroup() as clients:
            clients.create_task(self._listens(doors, self._people[1]))
            for number in range(self._clients):
                person = self._people[number % PEOPLE]
                work = (self._creates, self._drains, self._publishes)[number % 3]
                clients.create_task(work(doors, person))

    async def _settle(self, doors: Doors) -> None:
        """Logged in, and with books that everybody is in: as soon as the server lets us."""
        async with Wire(doors["http"]) as wire:
            for person in self._people:
                if not person.token:
                    await self._surely(
                        wire, "/auth/register", {"username": person.name, "password": PASSWORD}
                    )
                    answer = await self._surely(
                        wire, "/auth/login", {"username": person.name, "password": PASSWORD}
                    )
                    data = msgspec.json.decode(answer.body)["data"]
                    person.id, person.token = data["userId"], data["accessToken"]
            while len(self._books) < BOOKS:
                await self._share_a_book(wire)

    async def _share_a_book(self, wire: Wire) -> None:
        book = new_id()
        wire.token = self._people[0].token
        await self._surely(wire, "/api/v1/books/", {"_id": book, "name": "Book", "type": "x"})
        code = msgspec.json.decode((await self._surely(wire, f"/api/v1/books/{book}/share", None)).body)[
            "data"
        ]
        for person in self._people[1:]:
            wire.token = person.token
            await self._surely(wire, "/api/v1/books/join", {"code": code["code"]})
        self._books.append(book)

    async def _surely(self, wire: Wire, path: str, body: object) -> Answered:
        """Everything here can be sent again."""
        while True:
            try:
                answer = await wire.post(path, body)
            except Cut:
                await asyncio.sleep(AWAY_SECONDS)
                continue
            if answer.status < 500:
                return answer
            await asyncio.sleep(AWAY_SECONDS)

    async def _creates(self, doors: Doors, person: Person) -> None:
        async with Wire(doors["http"], person.token) as wire:
            while True:
                sent = self._choose(person)
                await self._ask(wire, "/api/v1/bills/", sent.body, [sent])

    async def _drains(self, doors: Doors, person: Person) -> None:
        async with Wire(doors["http"], person.token) as wire:
            while True:
                batch = [self._choose(person) for _ in range(BATCH)]
                operations = [
                    {"op": "create", "entity": "bill", "id": sent.id, "data": sent.body} for sent in batch
                ]
                await self._ask(wire, "/api/v1/sync/batch", {"operations": operations}, batch)

    async def _ask(self, wire: Wire, path: str, body: object, sent: list[Sent]) -> None:
        try:
            answer = await wire.post(path, body)
        except (Cut, asyncio.CancelledError) as error:
            self._not_heard(sent)
            if isinstance(error, asyncio.CancelledError):
                raise
            await asyncio.sleep(AWAY_SECONDS)
            return
        if answer.status == 503:
            self._not_heard(sent)
            await asyncio.sleep(AWAY_SECONDS)
            return
        if answer.status not in (200, 201):
            raise Lost(f"{path} was answered with {answer.status}: {answer.body!r}")
        data = msgspec.json.decode(answer.body)["data"]
        results = data if isinstance(data, list) else [{"status": answer.status, "data": data}]
        for one, result in zip(sent, results, strict=True):
            if result["status"] != 201:
                raise Lost(f"bill {one.number} was answered with {result}")
            self._heard(one, result["data"]["version"])

    async def _publishes(self, doors: Doors, person: Person) -> None:
        """Over the uplink: the broker's acknowledgement is the promise, the ACK has the version."""
        while True:
            sent = self._choose(person)
            try:
                async with self._mqtt(doors, person) as client:
                    await client.subscribe(f"heji/down/{person.id}/bill", qos=1)
                    while True:
                        await self._publish(client, person, sent)
                        sent = self._choose(person)
            except (aiomqtt.MqttError, asyncio.CancelledError, TimeoutError):
                self._not_heard([sent])
                end_if_cancelled()
                await asyncio.sleep(AWAY_SECONDS)

    async def _publish(self, client: aiomqtt.Client, person: Person, sent: Sent) -> None:
        message = {
            "id": new_id(), "type": "ADD_BILL", "book_id": sent.book, "timestamp": 0,
            "content": msgspec.json.encode(sent.body).decode(),
        }  # fmt: skip
        await client.publish(f"heji/up/{person.id}/bill", msgspec.json.encode(message), qos=1)
        async with asyncio.timeout(20):
            async for heard in client.messages:
                found = msgspec.json.decode(bytes(heard.payload))
                if found["id"] == message["id"]:
                    content = msgspec.json.decode(found["content"])
                    if not content["ok"]:
                        raise Lost(f"bill {sent.number} was refused: {content}")
                    self._heard(sent, content["version"])
                    return

    async def _listens(self, doors: Doors, person: Person) -> None:
        while True:
            try:
                async with self._mqtt(doors, person) as client:
                    await client.subscribe(f"heji/notify/{person.id}/#", qos=1)
                    async for heard in client.messages:
                        message = msgspec.json.decode(bytes(heard.payload))
                        bill = msgspec.json.decode(message["content"])
                        self._told[bill["_id"]] = message["timestamp"]
            except aiomqtt.MqttError:
                end_if_cancelled()
                await asyncio.sleep(AWAY_SECONDS)

    def _mqtt(self, doors: Doors, person: Person) -> aiomqtt.Client:
        host, _, port = doors["mqtt"].rpartition(":")
        return aiomqtt.Client(
            host, int(port), username=person.id, password=person.token, identifier=new_id(), timeout=20
        )

    def _choose(self, person: Person) -> Sent:
        """A new bill; or one of unknown fate, or an acknowledged one, of the same person, once more."""
        if self._random.random() < SEND_AGAIN:
            earlier = [*self._unknown.values()] if self._random.random() < 0.5 else self._acknowledged[-200:]
            own = [sent for sent in earlier if sent.number % PEOPLE == self._people.index(person)]
            if own:
                return self._random.choice(own)
        self._next += 1
        number = self._next * PEOPLE + self._people.index(person)
        return Sent(new_id(), self._books[self._next % BOOKS], number)

    def _not_heard(self, sent: list[Sent]) -> None:
        for one in sent:
            if one.id not in self._versions:
                self._unknown[one.id] = one
                self.figures.unknown += 1

    def _heard(self, sent: Sent, version: int) -> None:
        first = self._versions.get(sent.id)
        if first is None:
            self._versions[sent.id] = version
            self._acknowledged.append(sent)
            self._unknown.pop(sent.id, None)
            self.figures.acknowledged += 1
        elif first == version:
            self.figures.replayed += 1
        else:
            raise Lost(f"bill {sent.number} had version {first}, and sent again it has {version}")

    # -- proof

    async def verify(self, doors: Doors) -> None:
        if not self._books:
            return
        for person in self._people:
            await self._verify_feed(doors, person)

    async def _verify_feed(self, doors: Doors, person: Person) -> None:
        """Books are shared before their first bill, so a version is everybody's: everybody sees all that was
        acknowledged, where it was acknowledged, and nothing strange."""
        found: dict[str, int] = {}
        since = 0
        async with Wire(doors["http"], person.token) as wire:
            while True:
                page = await self._page(wire, f"/api/v1/sync/changes?since={since}&limit=1000")
                for bill in page["bills"]:
                    self._verify_bill(bill)
                    found[bill["_id"]] = bill["version"]
                since = page["next_since"]
                if page["has_more"]:
                    continue
                checksum = await self._page(wire, "/api/v1/sync/checksum")
                if checksum["version"] == since:
                    break  # otherwise a server that went on has finished what it had taken before
        if checksum["count"] != len(found) + len(self._books):
            raise Lost(
                f"{person.name}: the checksum counts {checksum['count']}, the feed shows {len(found)} bills"
            )
        self._compare(person, found)

    async def _page(self, wire: Wire, path: str) -> Any:
        answer = await wire.get(path)
        if answer.status != 200:
            raise Lost(f"{path} cannot be read: {answer.status} {answer.body!r}")
        return msgspec.json.decode(answer.body)["data"]

    def _verify_bill(self, bill: Any) -> None:
        if bill["category"] != f"bill {int(bill['money'])}":
            raise Lost(f"half a bill: {bill}")
        if bill["_id"] not in self._versions and bill["_id"] not in self._unknown:
            raise Lost(f"a bill nobody sent: {bill}")

    def _compare(self, person: Person, found: dict[str, int]) -> None:
        for id_, version in self._versions.items():
            if id_ not in found:
                raise Lost(f"{person.name}: the acknowledged bill {id_} is lost")
            if found[id_] != version:
                raise Lost(
                    f"{person.name}: bill {id_} was acknowledged at {version}, and lies at {found[id_]}"
                )
        for id_, version in self._told.items():
            if found.get(id_) != version:
                raise Lost(f"{person.name} was told of {id_} at {version}: it lies at {found.get(id_)}")
