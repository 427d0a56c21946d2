"""Three people write to each other and into a group through bad weather, and the server is killed meanwhile: after quiet
everybody has every message, once, in the same order, and each sender's in the order in which they were sent."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from holdfast.client import Holdfast
from tests.acceptance.serving import PASSWORD
from tests.client.chat_proxy import ChatProxy
from tests.client.http_proxy import HttpProxy
from tests.client.hurried import hurried
from tests.client.weather import Weather
from tests.client.world import World, until

STORMS = int(os.environ.get("HOLDFAST_STORMS", "2"))
STEPS = int(os.environ.get("HOLDFAST_STORM_STEPS", "60"))
PEOPLE = ("ann", "bob", "cyd")


class Program:
    def __init__(self, seed: int, world: World, weather: Weather) -> None:
        self.random = random.Random(seed)
        self.world = world
        self.weather = weather
        self.people: dict[str, Holdfast] = {}
        self.sent: dict[str, list[tuple[str, str]]] = {}
        """Conversation, seen from nobody's side → sender and words, in the order of the calls."""
        self.group = ""

    async def begin(self, doors: dict[str, str]) -> None:
        self.doors = doors
        for name in PEOPLE:
            person = self.people[name] = await self._open(name)
            await person.register(name, PASSWORD)
        ids = [person.user_id for person in self.people.values()]
        self.group = (await self.people["ann"].chat.create_group("Choir", tuple(ids[1:]))).group_id
        self.weather.calm = False

    async def _open(self, name: str) -> Holdfast:
        person = self.world.replica(name, doors=self.doors, timing=hurried(ord(name[0])), chat=True)
        await person.open()
        return person

    async def step(self) -> None:
        name = self.random.choice(PEOPLE)
        act = self.random.choices(
            (self.write, self.write_group, self.read, self.reopen, self.kill, self.cut), (30, 15, 10, 2, 1, 3)
        )[0]
        await act(name)

    async def write(self, name: str) -> None:
        other = self.random.choice([each for each in PEOPLE if each != name])
        words = f"{name} {self.random.randrange(10**9)}"
        await self.people[name].chat.send(words, to=self.people[other].user_id)
        self.sent.setdefault("+".join(sorted((name, other))), []).append((name, words))

    async def write_group(self, name: str) -> None:
        words = f"{name} {self.random.randrange(10**9)}"
        await self.people[name].chat.send(words, group=self.group)
        self.sent.setdefault("group", []).append((name, words))

    async def read(self, name: str) -> None:
        for conversation in await self.people[name].chat.conversations():
            await self.people[name].chat.mark_read(conversation.id)

    async def reopen(self, name: str) -> None:
        await self.people[name].close()
        self.people[name] = await self._open(name)

    async def kill(self, _name: str) -> None:
        await self.world.restart()

    async def cut(self, _name: str) -> None:
        self.weather.down = not self.weather.down

    def conversation(self, name: str, which: str) -> str:
        """As this person calls it."""
        if which == "group":
            return f"g:{self.group}"
        other = next(each for each in which.split("+") if each != name)
        return f"u:{self.people[other].user_id}"

    async def words(self, name: str, which: str) -> list[tuple[int, str]]:
        messages = await self.people[name].chat.messages(self.conversation(name, which), limit=10**6)
        return [(message.seq, message.body or "") for message in messages]

    async def settle(self) -> None:
        self.weather.calm, self.weather.down = True, False
        for person in self.people.values():
            person.network_returned()

        async def quiet() -> bool:
            for which, sent in self.sent.items():
                for name in PEOPLE if which == "group" else which.split("+"):
                    there = await self.words(name, which)
                    if len(there) < len(sent) or not all(seq for seq, _ in there):
                        return False
            return True

        await until(quiet, "everything has arrived", 90)


@asynccontextmanager
async def storm(world: World, seed: int) -> AsyncIterator[Program]:
    weather = Weather(seed, strength=0.1)
    weather.calm = True
    async with AsyncExitStack() as ends:
        http = await ends.enter_async_context(HttpProxy(weather, lambda: world.doors["http"]))
        chat = await ends.enter_async_context(ChatProxy(weather, lambda: world.doors["ws"]))
        program = Program(seed, world, weather)
        await program.begin({**world.doors, "http": http.address, "ws": chat.address})
        try:
            yield program
        finally:
            for person in program.people.values():
                await person.close()


@pytest.mark.parametrize("seed", range(STORMS))
async def test_after_any_storm_everybody_has_every_message_once_and_in_order(world: World, seed: int) -> None:
    async with storm(world, seed) as program:
        for _ in range(STEPS):
            await program.step()
        await program.settle()
        for which, sent in program.sent.items():
            names = list(PEOPLE) if which == "group" else which.split("+")
            first, *others = [await program.words(name, which) for name in names]
            assert all(other == first for other in others), which
            assert [seq for seq, _ in first] == list(range(1, len(sent) + 1)), which
            assert sorted(words for _, words in first) == sorted(words for _, words in sent)
            for name in names:
                mine = [words for _, words in first if words.startswith(name)]
                assert mine == [words for sender, words in sent if sender == name], (which, name)
        for person in program.people.values():
            await person.chat.refresh()
            assert await person.chat.filling.verify()
