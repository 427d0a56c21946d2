"""The ledger as both documents tell it: a real server, real MQTT clients, people who are sometimes offline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.acceptance.serving import PASSWORD, quick_server
from tests.faults.process import Server
from tests.ledger.follower import Follower, agrees
from tests.ledger.house import LUNCH, Person, new_id, together
from tests.ledger.phone import Phone, online

UNLIMITED = (
    "--set", "limits.requests=1000000000", "--set", "limits.anonymous_requests=1000000000",
    "--set", "auth.login_tries=1000000000",
)  # fmt: skip


class Town:
    """A running server, and its people."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.doors: dict[str, str] = {}
        self._http: httpx.AsyncClient | None = None
        self._people: list[Person] = []

    async def opens(self) -> None:
        self.doors = dict(await self.server.start())
        self._http = httpx.AsyncClient(base_url=f"http://{self.doors['http']}", timeout=30)
        for person in self._people:
            person._http = self._http

    async def closes(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self.server.end()

    async def is_killed_and_opens_again(self) -> None:
        self.server.kill()
        assert self._http is not None
        await self._http.aclose()
        await self.opens()

    async def person(self, name: str) -> Person:
        assert self._http is not None
        credentials = {"username": name, "password": PASSWORD}
        await self._http.post("/auth/register", json=credentials)
        said = (await self._http.post("/auth/login", json=credentials)).json()["data"]
        person = Person(int(said["userId"]), name, said["accessToken"], self._http)
        self._people.append(person)
        return person

    @asynccontextmanager
    async def online(self, person: Person, *ways: str, **more: Any) -> AsyncIterator[Phone]:
        async with online(person, self.doors["mqtt"], *ways, **more) as phone:
            yield phone


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    made = Town(quick_server(tmp_path / "data", *UNLIMITED))
    await made.opens()
    yield made
    await made.closes()


def bill(category: str, money: float, book: Any = None) -> dict[str, Any]:
    fields = {"_id": new_id(), "money": money, "type": 1, "category": category, "time": "2026-02-18"}
    return fields | ({} if book is None else {"book_id": book["_id"]})


def shown(page: Any) -> list[tuple[str, str | None, float | None]]:
    """What a page shows of bills, in its order: action, category, money."""
    return [(item["action"], item.get("category"), item.get("money")) for item in page["bills"]]


# -- the scenario of the documents: 18:00 to 20:00, five lost pushes


async def test_five_lost_pushes_are_caught_up_with_one_pull(town: Town) -> None:
    ming, hong = await town.person("xiaoming"), await town.person("xiaohong")
    book = await together(hong, ming)
    at_ming = Follower(ming)
    await at_ming.catch_up()
    async with town.online(ming, "notify") as phone:
        await hong.makes_bill(book, category="早餐", money=8)
        (push,) = await phone.hears_many(1)
        assert (push["type"], push["book_id"]) == ("ADD_BILL", book["_id"])
        assert push["timestamp"] > at_ming.since
        await at_ming.catch_up()
        assert push["timestamp"] == at_ming.since
    # 18:00 the underground
    dinner = await hong.makes_bill(book, category="晚餐", money=80)
    fruit = await hong.makes_bill(book, category="水果", money=25)
    await hong.makes_bill(book, category="打车", money=30)
    change = {"money": 88.8, "type": 1, "category": "晚餐", "time": "2026-02-18"}
    await hong.ok("PUT", f"/bills/{dinner['_id']}", change)
    await hong.ok("DELETE", f"/bills/{fruit['_id']}")
    # 20:00 home: what is new, as it is, not how it came about
    page = await ming.pulls(at_ming.since)
    assert shown(page) == [("add", "打车", 30), ("update", "晚餐", 88.8), ("delete", None, None)]
    assert page["bills"][2]["_id"] == fruit["_id"]
    assert page["has_more"] is False
    async with town.online(ming, "notify") as phone:
        await at_ming.catch_up(limit=1)
        await agrees(at_ming)
        assert phone.heard == [], "what was lost is not sent later"
        await hong.makes_bill(book, category="夜宵", money=20)
        (push,) = await phone.hears_many(1)
        assert msgspec.json.decode(push["content"])["category"] == "夜宵"


async def test_the_same_over_the_uplink(town: Town) -> None:
    ming, hong = await town.person("xiaoming"), await town.person("xiaohong")
    book = await together(hong, ming)
    at_ming = Follower(ming)
    await at_ming.catch_up()
    dinner, fruit, taxi = bill("晚餐", 80, book), bill("水果", 25, book), bill("打车", 30, book)
    async with town.online(ming, "down", name="ming's phone"):
        pass  # subscribed; 18:00 the underground
    async with town.online(hong, "down") as phone:
        versions = []
        for type_, content in (
            ("ADD_BILL", dinner),
            ("ADD_BILL", fruit),
            ("ADD_BILL", taxi),
            ("UPDATE_BILL", {**dinner, "money": 88.8}),
            ("DELETE_BILL", fruit["_id"]),
        ):
            sent = await phone.publishes("bill", type_, book["_id"], content)
            ack = await phone.acked(sent)
            assert ack["ok"] is True
            versions.append(ack["version"])
        assert versions == sorted(set(versions))
    # without a session that lasts (as with notify) all five are lost, and one pull catches up
    page = await ming.pulls(at_ming.since)
    assert shown(page) == [("add", "打车", 30), ("update", "晚餐", 88.8), ("delete", None, None)]
    await at_ming.catch_up(limit=2)
    await agrees(at_ming)
    # with one, the broker has kept them, in their order
    async with town.online(ming, name="ming's phone") as phone:
        messages = await phone.hears_many(5)
        assert [message["type"] for message in messages] == ["ADD_BILL"] * 3 + ["UPDATE_BILL", "DELETE_BILL"]
        assert [message["timestamp"] for message in messages] == versions
        assert messages[-1]["content"] == fruit["_id"]


async def test_an_old_client_and_a_new_one_share_a_book(town: Town) -> None:
    """The old one knows heji/up and heji/down alone; the new one HTTP and heji/notify."""
    old, new = await town.person("old"), await town.person("new")
    async with town.online(old, "down", name="old phone") as at_old, town.online(new, "notify") as at_new:
        book_id = new_id()
        sent = await at_old.publishes(
            "book", "ADD_BOOK", book_id, {"_id": book_id, "name": "Ours", "type": "daily"}
        )
        assert (await at_old.acked(sent))["ok"] is True
        book = {"_id": book_id}
        await new.joins(await old.shares(book))
        assert [m["type"] for m in await at_new.hears_many(1)] == ["ADD_BOOK"]
        assert [m["type"] for m in await at_old.hears_many(1)] == ["UPDATE_BOOK"]
        # the old one writes, the new one hears
        theirs = bill("old lunch", 10.5, book)
        sent = await at_old.publishes("bill", "ADD_BILL", book_id, theirs)
        assert (await at_old.acked(sent))["_id"] == theirs["_id"]
        (push,) = await at_new.hears_many(1)
        assert (push["type"], msgspec.json.decode(push["content"])["crt_user"]) == ("ADD_BILL", old.id)
        # the new one writes, the old one hears
        mine = await new.makes_bill(book, category="new lunch", money="12.5")
        (down,) = await at_old.hears_many(1)
        assert (down["type"], msgspec.json.decode(down["content"])["_id"]) == ("ADD_BILL", mine["_id"])
        # neither may touch the other's
        sent = await at_old.publishes("bill", "DELETE_BILL", book_id, mine["_id"])
        assert (await at_old.acked(sent))["reason"] == "forbidden"
        assert (await new.ask("DELETE", f"/bills/{theirs['_id']}")).status_code == 403
        # an image: the file over HTTP, the word of it over either
        image = await old.adds_image(theirs, b"\xff\xd8\xff photo")
        assert [m["type"] for m in await at_new.hears_many(1)] == ["IMAGE_UPLOADED"]
        content = {"image_id": image["_id"], "bill_id": theirs["_id"], "online_path": image["online_path"]}
        sent = await at_old.publishes("image", "IMAGE_UPLOADED", book_id, content)
        assert (await at_old.acked(sent))["ok"] is True
        said = await new.ask("GET", image["online_path"].removeprefix("/api/v1"))
        assert said.content == b"\xff\xd8\xff photo"
        # the old one removes the new one, who is told so and nothing more
        await old.removes(book, new)
        assert [m["type"] for m in await at_new.hears_many(1)] == ["DELETE_BOOK"]
        sent = await at_old.publishes("bill", "ADD_BILL", book_id, bill("alone", 1))
        await at_old.acked(sent)
    for person in (old, new):
        follower = Follower(person)
        await follower.catch_up(limit=1)
        await agrees(follower)
    assert at_new.heard == []


async def test_the_broker_acknowledges_an_uplink_message_when_it_is_committed(town: Town) -> None:
    """Acknowledged (PUBACK), killed at once, and there after the restart."""
    hong = await town.person("xiaohong")
    book = await hong.makes_book()
    sent: list[dict[str, Any]] = []
    for _ in range(3):
        async with town.online(hong) as phone:
            bills = [bill("dinner", n, book) for n in range(5)]
            await asyncio.gather(
                *[phone.publishes("bill", "ADD_BILL", book["_id"], content) for content in bills]
            )
            sent += bills
            town.server.kill()
        await town.is_killed_and_opens_again()
        there = (await hong.ok("GET", "/bills/", params={"book_id": book["_id"]}))["bills"]
        assert {found["_id"] for found in there} == {content["_id"] for content in sent}


async def test_an_uplink_message_is_answered_alike_after_a_restart(town: Town) -> None:
    hong, ming = await town.person("xiaohong"), await town.person("xiaoming")
    book = await together(hong, ming)
    async with town.online(hong, "down") as phone:
        sent = await phone.publishes("bill", "ADD_BILL", book["_id"], bill("dinner", 5, book))
        first = await phone.acked(sent)
    await town.is_killed_and_opens_again()
    async with town.online(hong, "down") as phone, town.online(ming, "down", "notify") as at_ming:
        for _ in range(2):
            await phone.sends("bill", sent)
            assert await phone.acked(sent) == first
        await hong.makes_bill(book, category="after")
        (down, notify) = await at_ming.hears_many(2)
        assert down["content"] == notify["content"], "the replays were told to nobody"


# -- every write sent twice, at once, and once more after SIGKILL


async def test_every_write_survives_being_sent_again_and_again(town: Town) -> None:
    """None of them is about what another one changes, so that each has the same answer at the end."""
    ann, bob = await town.person("ann"), await town.person("bob")
    book, joined, left, doomed = (
        await together(ann, bob),
        await ann.makes_book(),
        await together(ann, bob),
        await together(ann, bob),
    )
    bills = [await ann.makes_bill(book) for _ in range(5)]
    image = await ann.adds_image(bills[0], b"GIF89a gone")
    code = await ann.shares(joined)
    made = new_id()
    operations = [
        {"op": "create", "entity": "book", "id": made, "data": {"name": "By batch", "type": "x"}},
        {"op": "create", "entity": "bill", "id": new_id(), "data": {**LUNCH, "book_id": made}},
        {"op": "update", "entity": "bill", "id": bills[1]["_id"], "data": {**LUNCH, "money": 3}},
        {"op": "delete", "entity": "bill", "id": bills[2]["_id"]},
    ]
    upload = {"data": {"bill_id": bills[3]["_id"], "_id": new_id()}, "files": {"file": ("x", b"GIF89a new")}}
    put = {**LUNCH, "money": 2, "base_upd_time": bills[4]["upd_time"]}
    writes: list[tuple[Person, str, str, dict[str, Any]]] = [
        (ann, "POST", "/books/", {"body": {"_id": new_id(), "name": "New", "type": "x"}}),
        (ann, "PUT", f"/books/{book['_id']}", {"body": {"name": "Changed", "type": "x"}}),
        (ann, "POST", f"/books/{book['_id']}/share", {}),
        (bob, "POST", "/books/join", {"body": {"code": code}}),
        (bob, "DELETE", f"/books/{left['_id']}/members/{bob.id}", {}),
        (ann, "DELETE", f"/books/{doomed['_id']}", {}),
        (bob, "POST", "/bills/", {"body": {**LUNCH, "_id": new_id(), "book_id": book["_id"]}}),
        (
            ann,
            "POST",
            "/bills/",
            {"body": {**LUNCH, "book_id": book["_id"]}, "headers": {"Idempotency-Key": "k"}},
        ),
        (ann, "PUT", f"/bills/{bills[4]['_id']}", {"body": put}),
        (ann, "POST", "/images/upload", upload),
        (ann, "DELETE", f"/images/{image['_id']}", {}),
        (ann, "POST", "/sync/batch", {"body": {"operations": operations}}),
    ]
    answers = []
    for person, method, path, more in writes:
        first, second = await asyncio.gather(
            person.ask(method, path, **more), person.ask(method, path, **more)
        )
        assert first.status_code in (200, 201), first.text
        assert answered(second) == answered(first), path
        answers.append(answered(first))
    for _ in range(2):
        await town.is_killed_and_opens_again()
        for (person, method, path, more), before in zip(writes, answers, strict=True):
            assert answered(await person.ask(method, path, **more)) == before, path
    for person in (ann, bob):
        follower = Follower(person)
        await follower.catch_up(limit=3)
        await agrees(follower)


def answered(said: httpx.Response) -> Any:
    return said.json()["data"]
