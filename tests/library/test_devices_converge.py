"""Random programs of three devices that push before they pull: they end with the same copy, and it is the truth."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from itertools import count
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.library.conftest import Device, House, Json, OpenHouse
from tests.library.offline import ARRAYS, Entity, Phone, Truth

T = TypeVar("T")

EXAMPLES = int(os.environ.get("HOLDFAST_LIBRARY_PROGRAMS", "40"))
AS_ALWAYS = "HOLDFAST_LIBRARY_PROGRAMS" not in os.environ
"""The default programs are the same ones each time; whoever asks for a number gets new ones."""
STEPS = 40
TITLES = st.sampled_from(["a", "b", "c"])
PHONES = st.integers(0, 2)
_users = count(1_000)


class Devices(RuleBasedStateMachine):
    house: House
    run: Callable[[Coroutine[object, object, None]], None]

    def __init__(self) -> None:
        super().__init__()
        user = next(_users)  # a library of its own for each program
        self.phones = [Phone(Device(self.house.http, user)) for _ in range(3)]
        self.truth = Truth()

    @rule(phone=PHONES, title=TITLES, composer=st.sampled_from([None, "x"]), bpm=st.integers(1, 3))
    def makes_a_score(self, phone: int, title: str, composer: str | None, bpm: int) -> None:
        data: Json = {"title": title, "bpm": bpm}
        self.phones[phone].create("score", data | ({"composer": composer} if composer else {}))

    @rule(phone=PHONES, title=TITLES, note=st.integers(1, 3))
    def makes_a_setlist(self, phone: int, title: str, note: int) -> None:
        self.phones[phone].create("setlist", {"name": title, "note": note})

    @rule(phone=PHONES, which=st.integers(0, 9), title=TITLES)
    def makes_a_part(self, phone: int, which: int, title: str) -> None:
        score = self._some(phone, "score", which)
        if score is not None:
            self.phones[phone].create("instrumentScore", {"scoreId": score.name, "instrumentName": title})

    @rule(phone=PHONES, which=st.integers(0, 9), other=st.integers(0, 9))
    def puts_a_score_on_a_setlist(self, phone: int, which: int, other: int) -> None:
        score, setlist = self._some(phone, "score", which), self._some(phone, "setlist", other)
        if score is not None and setlist is not None:
            data: Json = {"setlistId": setlist.name, "scoreId": score.name}
            self.phones[phone].create("setlistScore", data)

    @rule(phone=PHONES, which=st.integers(0, 9), title=TITLES)
    def renames_a_score(self, phone: int, which: int, title: str) -> None:
        self._update(phone, "score", which, {"title": title})

    @rule(phone=PHONES, which=st.integers(0, 9), bpm=st.integers(4, 6))
    def changes_a_score(self, phone: int, which: int, bpm: int) -> None:
        self._update(phone, "score", which, {"bpm": bpm, "by": phone})

    @rule(phone=PHONES, which=st.integers(0, 9), title=TITLES)
    def renames_a_part(self, phone: int, which: int, title: str) -> None:
        self._update(phone, "instrumentScore", which, {"instrumentName": title})

    @rule(phone=PHONES, which=st.integers(0, 9), other=st.integers(0, 9))
    def moves_a_part(self, phone: int, which: int, other: int) -> None:
        score = self._some(phone, "score", other)
        if score is not None:
            self._update(phone, "instrumentScore", which, {"scoreId": score.name})

    @rule(phone=PHONES, kind=st.sampled_from(list(ARRAYS)), which=st.integers(0, 9))
    def deletes(self, phone: int, kind: str, which: int) -> None:
        entity = self._some(phone, kind, which)
        if entity is not None:
            self.phones[phone].delete(entity)

    @rule(phone=PHONES)
    def syncs(self, phone: int) -> None:
        self.run(self.phones[phone].sync(self.truth))

    @rule(first=PHONES, second=PHONES)
    def two_sync_at_once(self, first: int, second: int) -> None:
        async def both() -> None:
            await asyncio.gather(*(self.phones[which].sync(self.truth) for which in {first, second}))

        self.run(both())

    def teardown(self) -> None:
        async def to_the_end() -> None:
            for _ in range(2):
                for phone in self.phones:
                    await phone.sync(self.truth)
            assert self.truth.is_complete
            fresh = Phone(self.phones[0].device)
            await fresh.pull()
            for phone in (*self.phones, fresh):
                assert phone.copy() == self.truth.copy()
                assert phone.version == self.truth.version

        self.run(to_the_end())

    def _some(self, phone: int, kind: str, which: int) -> Entity | None:
        found = self.phones[phone].living(kind)
        return found[which % len(found)] if found else None

    def _update(self, phone: int, kind: str, which: int, data: Json) -> None:
        entity = self._some(phone, kind, which)
        if entity is not None:
            self.phones[phone].update(entity, data)


def test_three_devices_end_with_the_same_copy_and_nothing_accepted_has_disappeared(
    open_house: OpenHouse,
) -> None:
    with asyncio.Runner() as runner:

        async def everything() -> None:
            async with open_house() as house:
                loop = asyncio.get_running_loop()

                class OnThisHouse(Devices):
                    def run(self, steps: Coroutine[object, object, None]) -> None:
                        asyncio.run_coroutine_threadsafe(steps, loop).result(60)

                OnThisHouse.house = house
                await asyncio.to_thread(
                    run_state_machine_as_test,
                    OnThisHouse,
                    settings=settings(
                        max_examples=EXAMPLES,
                        stateful_step_count=STEPS,
                        deadline=None,
                        database=None,
                        derandomize=AS_ALWAYS,
                        suppress_health_check=list(HealthCheck),
                    ),
                )

        runner.run(everything())
