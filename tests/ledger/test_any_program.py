"""Random programs of several users and devices: whatever they do and in whatever order, after quiet every follower
holds exactly what the server would show its user then, checksum included. On both databases.

`HOLDFAST_PROGRAMS` multiplies how many programs are tried. A program that fails is made shorter when `HOLDFAST_SHRINK`
is set: that runs it again and again, for minutes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, ClassVar

import httpx
from hypothesis import HealthCheck, Phase
from hypothesis import settings as extent
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from holdfast.settings import Settings
from tests.ledger.follower import Follower, agrees
from tests.ledger.house import HOME, LUNCH, House, Person, house, new_id

PROGRAMS = int(12 * float(os.environ.get("HOLDFAST_PROGRAMS", "1")))
STEPS = 40
PHASES = [Phase.generate, *([Phase.shrink] if os.environ.get("HOLDFAST_SHRINK") else [])]
PEOPLE = 4
PHOTOS = [b"\xff\xd8\xff first", b"\x89PNG\r\n\x1a\n second", b"GIF89a third"]
NEVER = {500, 401, 405, 422, 429}

numbers = st.integers(0, 1_000_000)
who = st.integers(0, PEOPLE - 1)
KINDS = [
    "book", "bill", "bill", "bill", "change bill", "change bill", "delete bill", "change book", "delete book",
    "share", "join", "join", "join", "leave", "remove", "image", "image", "delete image", "batch", "revoke",
]  # fmt: skip
doing = st.tuples(st.sampled_from(KINDS), who, numbers, numbers)
Doing = tuple[str, int, int, int]


class Programs(RuleBasedStateMachine):
    """The server and its loop are the test's; every program has people of its own."""

    home: ClassVar[House]
    runner: ClassVar[asyncio.Runner]

    def run_(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    @initialize()
    def begin(self) -> None:
        self.people: list[Person] = self.run_(self.home.people(PEOPLE))
        self.followers = [
            Follower(person, with_epoch=device == 0) for person in self.people for device in range(2)
        ]
        self.books: list[tuple[str, Person]] = []
        self.bills: list[tuple[str, str, Person]] = []
        self.images: list[tuple[str, Person]] = []
        self.codes: list[str] = []
        self.run_(self.furnish())

    async def furnish(self) -> None:
        """Something to begin with: two books that are shared, one of them by everybody."""
        for number, maker in enumerate(self.people[:2]):
            book = await maker.makes_book()
            self.books.append((book["_id"], maker))
            self.codes.append(await maker.shares(book))
            for friend in self.people[: PEOPLE - 2 * number]:
                await friend.joins(self.codes[-1])
                bill = await friend.makes_bill(book)
                self.bills.append((bill["_id"], book["_id"], friend))

    # -- rules

    @rule(what=doing)
    def somebody_does_something(self, what: Doing) -> None:
        self.run_(self.does(what))

    @rule(all_=st.lists(doing, min_size=2, max_size=5))
    def several_do_something_at_once(self, all_: list[Doing]) -> None:
        self.run_(self.together([self.does(what) for what in all_]))

    @rule(what=doing, turns=st.integers(0, 12))
    def a_request_is_cut_and_sent_again(self, what: Doing, turns: int) -> None:
        self.run_(self.cut_and_again(what, turns))

    @rule(what=doing)
    def a_request_is_sent_twice_at_once(self, what: Doing) -> None:
        self.run_(self.twice(what))

    @rule(device=st.integers(0, 2 * PEOPLE - 1), limit=st.integers(1, 6))
    def somebody_pulls_a_page(self, device: int, limit: int) -> None:
        self.run_(self.followers[device].page(limit))

    @rule(all_=st.lists(doing, min_size=1, max_size=3), device=st.integers(0, 2 * PEOPLE - 1))
    def somebody_pulls_while_others_write(self, all_: list[Doing], device: int) -> None:
        self.run_(self.together([*[self.does(what) for what in all_], self.followers[device].page(2)]))

    def teardown(self) -> None:
        if hasattr(self, "followers"):
            self.run_(self.quiet())

    async def quiet(self) -> None:
        fresh = [Follower(person) for person in self.people]
        for number, follower in enumerate([*self.followers, *fresh]):
            await follower.catch_up(limit=1 + number % 5)
            await agrees(follower)

    # -- what they do

    async def together(self, all_: list[Coroutine[Any, Any, Any]]) -> None:
        await asyncio.gather(*all_)

    async def does(self, what: Doing) -> None:
        await self.sent(self.request(what))

    async def twice(self, what: Doing) -> None:
        request = self.request(what)
        first, second = await asyncio.gather(self.sent(request), self.sent(request))
        if request[1] == "POST" and "share" not in request[2]:
            assert first.status_code == second.status_code, (first.text, second.text)

    async def cut_and_again(self, what: Doing, turns: int) -> None:
        request = self.request(what)
        task = asyncio.create_task(self.sent(request))
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.sent(request)

    async def sent(self, request: tuple[Person, str, str, dict[str, Any]]) -> httpx.Response:
        person, method, path, more = request
        said = await person.ask(method, path, **more)
        assert said.status_code not in NEVER, (method, path, more, said.text)
        if said.status_code in (200, 201):
            self.learn(path, said.json()["data"])
        return said

    def learn(self, path: str, data: Any) -> None:
        if path.endswith("/share") and data is not None and data["code"] not in self.codes:
            self.codes.append(data["code"])

    def request(self, what: Doing) -> tuple[Person, str, str, dict[str, Any]]:
        """Complete, ids and all, so that it can be sent again as it is."""
        kind, someone, one, other = what
        person = self.people[someone]
        book, maker = self.books[-1 - one % min(len(self.books), 6)]
        bill, home, author = self.bills[-1 - one % min(len(self.bills), 12)]
        image, owner = self.images[-1 - one % min(len(self.images), 6)] if self.images else (new_id(), person)
        friend = self.people[other % PEOPLE]
        may = other % 4 != 0  # mostly whoever is allowed to
        match kind:
            case "book":
                self.books.append(((id_ := new_id()), person))
                return person, "POST", "/books/", {"body": {"_id": id_, **HOME}}
            case "bill":
                self.bills.append(((id_ := new_id()), book, person))
                return person, "POST", "/bills/", {"body": self.new_bill(id_, book, other)}
            case "change bill":
                body = {**LUNCH, "money": other % 5}
                return author if may else person, "PUT", f"/bills/{bill}", {"body": body}
            case "delete bill":
                return author if may else person, "DELETE", f"/bills/{bill}", {}
            case "change book":
                body = {**HOME, "name": f"name {other % 3}"}
                return maker if may else person, "PUT", f"/books/{book}", {"body": body}
            case "delete book":
                return maker if may and one % 2 else person, "DELETE", f"/books/{book}", {}
            case "share":
                return maker if may else person, "POST", f"/books/{book}/share", {}
            case "revoke":
                return maker if may else person, "DELETE", f"/books/{book}/share", {}
            case "join":
                return (
                    person,
                    "POST",
                    "/books/join",
                    {"body": {"code": self.codes[-1 - one % min(len(self.codes), 5)]}},
                )
            case "leave":
                return person, "DELETE", f"/books/{book}/members/{person.id}", {}
            case "remove":
                return maker if may else person, "DELETE", f"/books/{book}/members/{friend.id}", {}
            case "image":
                sender = author if may else person
                self.images.append(((id_ := new_id()), sender))
                photo = {"file": ("photo", PHOTOS[other % len(PHOTOS)])}
                more = {"data": {"bill_id": bill, "_id": id_}, "files": photo}
                return sender, "POST", "/images/upload", more
            case "delete image":
                return owner if may else person, "DELETE", f"/images/{image}", {}
            case _:
                operations = self.batch(author, home, bill, image, other)
                return author, "POST", "/sync/batch", {"body": {"operations": operations}}

    def new_bill(self, id_: str, book: str, other: int) -> dict[str, Any]:
        return {
            **LUNCH,
            "_id": id_,
            "book_id": book,
            "time": f"2026-02-{1 + other % 28:02d}",
            "money": other % 7,
        }

    def batch(self, person: Person, book: str, bill: str, image: str, other: int) -> list[dict[str, Any]]:
        """A new book with a bill, a bill in an old book, and whatever else."""
        made, first, second = new_id(), new_id(), new_id()
        self.books.append((made, person))
        self.bills += [(first, made, person), (second, book, person)]
        operations: list[dict[str, Any]] = [
            {"op": "create", "entity": "book", "id": made, "data": HOME},
            {"op": "create", "entity": "bill", "id": first, "data": self.new_bill(first, made, other)},
            {"op": "create", "entity": "bill", "id": second, "data": self.new_bill(second, book, other)},
            {"op": "update", "entity": "bill", "id": bill, "data": {**LUNCH, "money": other % 3}},
            {"op": "update", "entity": "bill", "id": first, "data": {**LUNCH, "money": other % 3}},
            {"op": "delete", "entity": "image", "id": image},
        ]
        if other % 3 == 0:
            operations.append({"op": "delete", "entity": "bill", "id": first})
        if other % 5 == 0:
            operations.append({"op": "delete", "entity": "book", "id": made})
        return operations


def test_after_quiet_every_follower_holds_what_the_server_shows(settings: Settings) -> None:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        Programs.runner = runner
        Programs.home = runner.run(stack.enter_async_context(house(settings)))
        try:
            run_state_machine_as_test(
                Programs,
                settings=extent(
                    max_examples=PROGRAMS,
                    stateful_step_count=STEPS,
                    phases=PHASES,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(stack.aclose())
