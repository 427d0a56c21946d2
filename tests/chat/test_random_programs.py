"""Users, groups, joins and leaves, sends, acknowledgements that are missing, disconnects, kicks, restarts, in any order.

`HOLDFAST_CHAT_PROGRAMS=200` runs that many on each database.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.chat.conftest import QUICK, House, OpenHouse
from tests.chat.crowd import Crowd, Person

PEOPLE, GROUPS = 4, 2
PROGRAMS = int(os.environ.get("HOLDFAST_CHAT_PROGRAMS", "15"))
# (small pages of time: what a lost push or a full window leaves behind is looked for soon)
CHAT = msgspec.structs.replace(QUICK, window=7, compare_seconds=1.0)

who = st.integers(0, PEOPLE - 1)
which = st.integers(0, GROUPS - 1)
ACTS = st.one_of(
    st.tuples(st.just("say"), who, who),
    st.tuples(st.just("say_to_group"), who, which),
    st.tuples(st.just("storm"), st.integers(2, 12), which),
    st.tuples(st.just("join"), who, which),
    st.tuples(st.just("leave"), who, which),
    st.tuples(st.just("come"), who, st.booleans()),
    st.tuples(st.just("cut"), who),
    st.tuples(st.just("close"), who),
    st.tuples(st.just("acks"), who, st.booleans()),
    st.tuples(st.just("restart")),
)


async def run(open_house: OpenHouse, program: list[tuple[object, ...]]) -> None:
    async with AsyncExitStack() as first:
        house = await first.enter_async_context(open_house(CHAT))
        users = await house.users(PEOPLE)
        people = [Person(user) for user in users]
        groups = [await house.group(users[0], *users[1 : 2 + number]) for number in range(GROUPS)]
        crowd = Crowd(people, groups)
        for number, group in enumerate(groups):
            crowd.inside[group] = dict.fromkeys(users[: 2 + number], 0)
        stack = first.pop_all()
    try:
        for act in program:
            if act[0] == "restart":
                for person in people:
                    await crowd.go(person, politely=False)
                await stack.aclose()
                stack = AsyncExitStack()
                house = await stack.enter_async_context(open_house(CHAT))
            else:
                await do(house, crowd, act)
        await crowd.verify(house)
    finally:
        for person in people:
            if person.phone is not None:
                await person.phone.close()
        await stack.aclose()


async def do(house: House, crowd: Crowd, act: tuple[object, ...]) -> None:
    people, groups = crowd.people, crowd.groups
    match act:
        case ("say", int(one), int(other)):
            await crowd.say(people[one], people[other])
        case ("say_to_group", int(one), int(group)):
            await crowd.say_to_group(people[one], groups[group])
        case ("storm", int(size), int(group)):
            await asyncio.gather(
                *(crowd.say_to_group(people[at % PEOPLE], groups[group]) for at in range(size)),
                *(crowd.say(people[at % PEOPLE], people[(at + 1) % PEOPLE]) for at in range(size)),
            )
        case ("join", int(one), int(group)):
            await crowd.join(house, people[one], groups[group])
        case ("leave", int(one), int(group)):
            await crowd.leave(house, people[one], groups[group])
        case ("come", int(one), bool(acks)):
            people[one].acks = acks
            await crowd.come(house, people[one])
        case ("cut" | "close" as how, int(one)):
            await crowd.go(people[one], politely=how == "close")
        case ("acks", int(one), bool(acks)):
            phone = people[one].phone
            if phone is not None:
                phone.acks = acks


@settings(
    deadline=None,
    max_examples=PROGRAMS,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
@given(program=st.lists(ACTS, min_size=5, max_size=30))
async def test_after_quiet_everybody_has_what_they_should_have_and_the_cursors_say_so(
    open_house: OpenHouse, program: list[tuple[object, ...]]
) -> None:
    everybody: list[tuple[object, ...]] = [("come", at, True) for at in range(PEOPLE - 1)]
    await run(open_house, everybody + program)
