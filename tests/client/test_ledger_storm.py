"""Random programs on three replicas, through a network that cuts, delays, doubles and reorders, to a real server that is
killed meanwhile: after quiet all of them hold what the server holds, nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from holdfast.client import Bill, Holdfast, NotHere, NotOwner, Offline, Refused
from holdfast.client.holdfast import Transport
from tests.acceptance.serving import PASSWORD
from tests.client.http_proxy import HttpProxy
from tests.client.hurried import hurried
from tests.client.mqtt_proxy import MqttProxy
from tests.client.weather import Weather
from tests.client.world import World, until

STORMS = int(os.environ.get("HOLDFAST_STORMS", "2"))
STEPS = int(os.environ.get("HOLDFAST_STORM_STEPS", "60"))
PNG = b"\x89PNG\r\n\x1a\n"


class Program:
    """Three replicas of two people, what they did, and what must have come of it."""

    def __init__(self, seed: int, world: World, weather: Weather, transport: Transport) -> None:
        self.random = random.Random(seed)
        self.world = world
        self.weather = weather
        self.transport: Transport = transport
        self.apps: dict[str, Holdfast] = {}
        self.book = ""
        self.added: dict[str, str] = {}
        """Bills that a call has returned, with the replica that made each."""
        self.touched: dict[str, set[str]] = {}
        """What may have become of each: the categories that were written, and `deleted`."""

    async def begin(self, doors: dict[str, str]) -> None:
        self.doors = doors
        for name, user in (("ann1", "ann"), ("ann2", "ann"), ("bob1", "bob")):
            app = self.apps[name] = await self._open(name)
            if name == "ann2":
                await app.login(user, PASSWORD)
            else:
                await app.register(user, PASSWORD)
        ann = self.apps["ann1"]
        self.book = (await ann.ledger.add_book("Home")).id
        code = await ann.ledger.share(self.book)
        await self.apps["bob1"].ledger.join(code.code)
        await self.apps["ann2"].refresh()
        self.weather.calm = False

    async def _open(self, name: str) -> Holdfast:
        app = self.world.replica(
            name, doors=self.doors, transport=self.transport, timing=hurried(hash(name) & 0xFFFF)
        )
        await app.open()
        return app

    async def step(self) -> None:
        name = self.random.choice(list(self.apps))
        act = self.random.choices(
            (
                self.add,
                self.change,
                self.delete,
                self.picture,
                self.look,
                self.close_and_open,
                self.kill,
                self.cut,
            ),
            (30, 25, 8, 4, 8, 3, 1, 3),
        )[0]
        with suppress(NotHere, NotOwner):  # another replica was quicker; nothing was changed
            await act(name)

    async def add(self, name: str) -> None:
        number = len(self.added)
        bill = await self.apps[name].ledger.add_bill(self.book, number, "new", remark=f"{name} {number}")
        self.added[bill.id] = name
        self.touched[bill.id] = {"new"}

    async def _mine(self, name: str) -> Bill | None:
        app = self.apps[name]
        bills = [bill for bill in await app.ledger.bills(self.book) if app.ledger.can_edit(bill)]
        return self.random.choice(bills) if bills else None

    async def change(self, name: str) -> None:
        if bill := await self._mine(name):
            word = f"word {self.random.randrange(10**9)}"
            self.touched[bill.id].add(word)
            await self.apps[name].ledger.change_bill(bill.id, category=word)

    async def delete(self, name: str) -> None:
        if bill := await self._mine(name):
            self.touched[bill.id].add("deleted")
            await self.apps[name].ledger.delete_bill(bill.id)

    async def picture(self, name: str) -> None:
        if bill := await self._mine(name):
            await self.apps[name].ledger.add_image(bill.id, PNG + os.urandom(20))

    async def look(self, name: str) -> None:
        try:
            await self.apps[name].refresh()
        except (Offline, Refused):
            return

    async def close_and_open(self, name: str) -> None:
        await self.apps[name].close()
        self.apps[name] = await self._open(name)

    async def kill(self, _name: str) -> None:
        await self.world.restart()

    async def cut(self, _name: str) -> None:
        self.weather.down = not self.weather.down

    # -- after quiet

    async def settle(self) -> None:
        self.weather.calm, self.weather.down = True, False
        for app in self.apps.values():
            app.network_returned()

        async def nothing_waits() -> bool:
            for app in self.apps.values():
                try:
                    await app.refresh()
                except Offline:
                    return False
            waiting = [await app.ledger.waiting() for app in self.apps.values()]
            return not any(room.pending for room in waiting)

        await until(nothing_waits, "everything is sent", 60)
        for app in self.apps.values():
            await app.ledger.refresh()

    async def holds(self, app: Holdfast) -> list[tuple[object, ...]]:
        held: list[tuple[object, ...]] = []
        for book in await app.ledger.books():
            held.append((book.id, book.name, book.members, book.upd_time))
            for bill in await app.ledger.bills(book.id):
                images = tuple(image.id for image in await app.ledger.images(bill.id))
                held.append(
                    (bill.id, bill.money, bill.category, bill.remark, bill.upd_time, bill.synced, images)
                )
        return held

    async def check(self) -> None:
        fresh = await self.world.opened("fresh")
        await fresh.login("ann", PASSWORD)
        await fresh.refresh()
        server = await self.holds(fresh)
        for name, app in self.apps.items():
            assert await self.holds(app) == server, name
            assert await app.ledger.sync.verify(at_once=True) is True, name
            assert await app.ledger.parked() == []
        bills = {bill.id: bill for bill in await fresh.ledger.bills(self.book)}
        remarks = [bill.remark for bill in bills.values()]
        assert len(remarks) == len(set(remarks))
        for identity, touched in self.touched.items():
            if identity not in bills:
                assert "deleted" in touched
            else:
                assert bills[identity].category in touched
        assert bills.keys() <= self.added.keys()


@asynccontextmanager
async def storm(world: World, seed: int, transport: Transport) -> AsyncIterator[Program]:
    weather = Weather(seed)
    weather.calm = True
    async with AsyncExitStack() as ends:
        http = await ends.enter_async_context(HttpProxy(weather, lambda: world.doors["http"]))
        mqtt = await ends.enter_async_context(MqttProxy(weather, lambda: world.doors["mqtt"]))
        program = Program(seed, world, weather, transport)
        await program.begin({**world.doors, "http": http.address, "mqtt": mqtt.address})
        try:
            yield program
        finally:
            for app in program.apps.values():
                await app.close()


@pytest.mark.parametrize("transport", ["http", "mqtt"])
@pytest.mark.parametrize("seed", range(STORMS))
async def test_after_any_storm_all_replicas_and_the_server_are_equal(
    world: World, seed: int, transport: Transport
) -> None:
    async with storm(world, seed, transport) as program:
        for _ in range(STEPS):
            await program.step()
        await program.settle()
        await program.check()
        assert program.weather.happened
