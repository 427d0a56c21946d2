"""Three devices of one person edit one library through bad weather, and the server is killed meanwhile: after quiet all
hold the same, nothing that was added is lost, nothing is there twice, every PDF can be had."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from holdfast.client import AlreadyHere, Holdfast, NotHere, Offline, Refused
from tests.acceptance.serving import PASSWORD
from tests.client.http_proxy import HttpProxy
from tests.client.hurried import hurried
from tests.client.weather import Weather
from tests.client.world import World, until

STORMS = int(os.environ.get("HOLDFAST_STORMS", "2"))
STEPS = int(os.environ.get("HOLDFAST_STORM_STEPS", "60"))
COMPOSERS = ("Chopin", "Satie", None)
INSTRUMENTS = ("Piano", "Violin", "Flute")


def a_pdf(source: random.Random, size: int) -> bytes:
    return b"%PDF-1.4\n" + source.randbytes(size) + b"\n%%EOF\n"


class Program:
    def __init__(self, seed: int, world: World, weather: Weather) -> None:
        self.random = random.Random(seed)
        self.world = world
        self.weather = weather
        self.devices: dict[str, Holdfast] = {}
        self.titles: set[str] = set()
        """Scores that only one device ever named, and nobody deleted."""
        self.deleted: set[str] = set()

    async def begin(self, doors: dict[str, str]) -> None:
        self.doors = doors
        for name in ("desk", "phone", "stand"):
            device = self.devices[name] = await self._open(name)
            if name == "desk":
                await device.register("ann", PASSWORD)
            else:
                await device.login("ann", PASSWORD)
        self.weather.calm = False

    async def _open(self, name: str) -> Holdfast:
        device = self.world.replica(name, doors=self.doors, timing=hurried(len(name)))
        await device.open()
        return device

    async def step(self) -> None:
        device = self.devices[self.random.choice(list(self.devices))]
        acts = (
            (self.score, 20),
            (self.part, 20),
            (self.setlist, 6),
            (self.entry, 10),
            (self.change, 16),
            (self.delete, 6),
            (self.look, 16),
            (self.reopen, 2),
            (self.kill, 1),
            (self.cut, 3),
        )
        act = self.random.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        with suppress(NotHere, AlreadyHere):
            await act(device)

    async def score(self, device: Holdfast) -> None:
        common = self.random.random() < 0.4  # a key that other devices use as well
        title = f"Common {self.random.randrange(4)}" if common else f"Own {self.random.randrange(10**9)}"
        await device.library.add_score(
            title, composer=self.random.choice(COMPOSERS), bpm=self.random.randrange(200)
        )
        if title.startswith("Own"):
            self.titles.add(title)

    async def part(self, device: Holdfast) -> None:
        score = self.random.choice(await device.library.scores() or [None])
        if score is not None:
            size = self.random.choice((200, 5_000, 1_500_000))
            pdf = a_pdf(self.random, size) if self.random.random() < 0.6 else None
            await device.library.add_part(score.id, self.random.choice(INSTRUMENTS), pdf=pdf)

    async def setlist(self, device: Holdfast) -> None:
        await device.library.add_setlist(f"List {self.random.randrange(5)}")

    async def entry(self, device: Holdfast) -> None:
        lists, scores = await device.library.setlists(), await device.library.scores()
        if lists and scores:
            chosen = self.random.choice(lists), self.random.choice(scores)
            await device.library.add_to_setlist(chosen[0].id, chosen[1].id, order=self.random.randrange(9))

    async def change(self, device: Holdfast) -> None:
        scores = await device.library.scores()
        if not scores:
            return
        score = self.random.choice(scores)
        if self.random.random() < 0.5:
            await device.library.change_score(score.id, bpm=self.random.randrange(200))
        elif parts := await device.library.parts(score.id):
            await device.library.change_part(
                self.random.choice(parts).id, annotations=str(self.random.random())
            )

    async def delete(self, device: Holdfast) -> None:
        scores = await device.library.scores()
        if scores:
            score = self.random.choice(scores)
            self.deleted.add(score.title)
            await device.library.delete_score(score.id)

    async def look(self, device: Holdfast) -> None:
        with suppress(Offline, Refused):
            await device.library.refresh()

    async def reopen(self, device: Holdfast) -> None:
        name = next(name for name, each in self.devices.items() if each is device)
        await device.close()
        self.devices[name] = await self._open(name)

    async def kill(self, _device: Holdfast) -> None:
        await self.world.restart()

    async def cut(self, _device: Holdfast) -> None:
        self.weather.down = not self.weather.down

    async def settle(self) -> None:
        self.weather.calm, self.weather.down = True, False

        async def quiet() -> bool:
            for device in self.devices.values():
                device.network_returned()
                try:
                    await device.library.refresh()
                except Offline:
                    return False
            waiting = [(await device.library.waiting()).pending for device in self.devices.values()]
            return not any(waiting)

        await until(quiet, "everything is sent", 60)
        await until(quiet, "everything is pulled", 60)


async def holds(device: Holdfast) -> list[tuple[object, ...]]:
    """What a library says, in words that do not depend on a device's own ids."""
    library, held = device.library, list[tuple[object, ...]]()
    titles = {}
    for score in await library.scores():
        titles[score.id] = (score.title, score.composer or "")
        held.append((*titles[score.id], score.bpm, score.state))
        for part in await library.parts(score.id):
            held.append((*titles[score.id], part.instrument, part.pdf, part.annotations, part.state))
    for setlist in await library.setlists():
        held.append((setlist.name, setlist.state))
        for entry in await library.entries(setlist.id):
            held.append((setlist.name, *titles[entry.score_id], entry.order, entry.state))
    return sorted(held, key=repr)


@asynccontextmanager
async def storm(world: World, seed: int) -> AsyncIterator[Program]:
    weather = Weather(seed, strength=0.1)
    weather.calm = True
    async with AsyncExitStack() as ends:
        http = await ends.enter_async_context(HttpProxy(weather, lambda: world.doors["http"]))
        program = Program(seed, world, weather)
        await program.begin({**world.doors, "http": http.address})
        try:
            yield program
        finally:
            for device in program.devices.values():
                await device.close()


@pytest.mark.parametrize("seed", range(STORMS))
async def test_after_any_storm_all_devices_hold_the_same_library(world: World, seed: int) -> None:
    async with storm(world, seed) as program:
        for _ in range(STEPS):
            await program.step()
        await program.settle()
        fresh = await world.opened("fresh")
        await fresh.login("ann", PASSWORD)
        await fresh.library.refresh()
        server = await holds(fresh)
        for name, device in program.devices.items():
            assert await device.library.parked() == [], name
            assert await holds(device) == server, name
            assert await device.library.sync.verify(at_once=True) is True, name
        keys = [(score.title, score.composer or "") for score in await fresh.library.scores()]
        assert len(keys) == len(set(keys))
        assert program.titles - program.deleted <= {title for title, _ in keys}
        for score in await fresh.library.scores():
            for part in await fresh.library.parts(score.id):
                if part.pdf is not None:
                    assert (await fresh.library.pdf(part.id)).stat().st_size
