"""Who may do what, over HTTP: every verb × everybody. The same for topics stands in test_topics and the acceptance tests.

A row is a request, and for each role the status it gets. Each cell has its own book, so that no answer hangs on another.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import httpx
import pytest

from holdfast.accounts.model import Grant
from holdfast.accounts.tokens import AccessTokens
from holdfast.clock import ManualClock, SystemClock
from tests.ledger.house import HOME, LUNCH, House, Person, new_id

JPEG = b"\xff\xd8\xff\xe0" + b"photo" * 40
ROLES = ("creator", "member", "author", "former", "stranger", "nobody", "expired")


class Scene:
    """A book of the creator's with a member, an author (a member with a bill and an image in it), and a former member."""

    def __init__(self, home: House, people: dict[str, Person]) -> None:
        self.home = home
        self.people = people
        self.book: Any = None
        self.bill: Any = None
        self.image: Any = None
        self.code = ""

    async def set(self) -> None:
        creator, member, author, former = (
            self.people[role] for role in ("creator", "member", "author", "former")
        )
        self.book = await creator.makes_book()
        self.code = await creator.shares(self.book)
        for person in (member, author, former):
            await person.joins(self.code)
        self.bill = await author.makes_bill(self.book)
        self.image = await author.adds_image(self.bill, JPEG)
        await former.leaves(self.book)

    def url(self, path: str, who: str) -> str:
        return path.format(
            book=self.book["_id"],
            bill=self.bill["_id"],
            image=self.image["_id"],
            me=self.people[who].id,
            member=self.people["member"].id,
            creator=self.people["creator"].id,
            former=self.people["former"].id,
            stranger=self.people["stranger"].id,
        )

    def body(self, what: str) -> dict[str, Any]:
        return {
            "book": dict(HOME),
            "changed book": {**HOME, "name": "Changed"},
            "bill": {**LUNCH, "book_id": self.book["_id"]},
            "changed bill": {**LUNCH, "money": 1},
            "code": {"code": self.code},
            "batch": {
                "operations": [
                    {"op": "update", "entity": "bill", "id": self.bill["_id"], "data": {**LUNCH, "money": 2}}
                ]
            },
        }[what]


@pytest.fixture
async def scene(quick_home: House) -> Scene:
    people = {role: await quick_home.person(role) for role in ROLES if role not in ("nobody", "expired")}
    expired = await quick_home.person("expired")
    accounts = quick_home.app.accounts
    past = AccessTokens(
        accounts._keys, quick_home.app.settings.auth, ManualClock(SystemClock().now_ms() - 3_600_000)
    )
    expired.token = past.issue(Grant(expired.user_id, expired.name, 1))
    people["expired"] = expired
    people["nobody"] = quick_home.nobody()
    return Scene(quick_home, people)


TABLE = """
                                           creator member author former stranger nobody expired
POST   /books/                    book         201    201    201    201      201    401     401
GET    /books/                    -            200    200    200    200      200    401     401
PUT    /books/{book}              changed-book 200    403    403    404      404    401     401
DELETE /books/{book}              -            200    403    403    404      404    401     401
POST   /books/{book}/share        -            200    403    403    404      404    401     401
DELETE /books/{book}/share        -            200    403    403    404      404    401     401
POST   /books/join                code         200    200    200    200      200    401     401
DELETE /books/{book}/members/{me} -            403    200    200    200      404    401     401
DELETE /books/{book}/members/{member} -        200    200    403    404      404    401     401
DELETE /books/{book}/members/{creator} -       403    403    403    404      404    401     401
DELETE /books/{book}/members/{former} -        200    403    403    200      404    401     401
DELETE /books/{book}/members/{stranger} -      404    403    403    404      404    401     401
POST   /bills/                    bill         201    201    201    404      404    401     401
PUT    /bills/{bill}              changed-bill 403    403    200    404      404    401     401
DELETE /bills/{bill}              -            403    403    200    404      404    401     401
GET    /bills/?book_id={book}     -            200    200    200    404      404    401     401
POST   /images/upload             image        403    403    201    404      404    401     401
POST   /image/upload              image        403    403    201    404      404    401     401
GET    /images/{image}            -            200    200    200    404      404    401     401
DELETE /images/{image}            -            403    403    200    404      404    401     401
POST   /sync/batch                batch        200    200    200    200      200    401     401
GET    /sync/changes?since=0      -            200    200    200    200      200    401     401
GET    /sync/checksum             -            200    200    200    200      200    401     401
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()[1:]]
CELLS = [
    (method, path, what.replace("-", " "), role, int(status))
    for method, path, what, *statuses in ROWS
    for role, status in zip(ROLES, statuses, strict=True)
]


def requested(scene: Scene, person: Person, method: str, path: str, what: str) -> Awaitable[httpx.Response]:
    if what == "image":
        files = {"file": ("x", JPEG + new_id().encode(), "image/jpeg")}
        return person.ask(method, path, data={"bill_id": scene.bill["_id"]}, files=files)
    return person.ask(method, path, scene.body(what) if what != " " else None)


@pytest.mark.parametrize("role", ROLES)
async def test_every_verb_for(scene: Scene, role: str) -> None:
    wrong = []
    for method, path, what, who, status in CELLS:
        if who != role:
            continue
        await scene.set()
        person = scene.people[role]
        before = await scene.people["creator"].checksum()
        said = await requested(scene, person, method, scene.url(path, role), what)
        if said.status_code != status:
            wrong.append(f"{method} {path}: {said.status_code} instead of {status} {said.text}")
        if status >= 400:
            assert said.json()["code"] // 100 == said.status_code
            if await scene.people["creator"].checksum() != before:
                wrong.append(f"{method} {path}: refused, and changed something")
        if status == 401:
            assert said.headers["www-authenticate"].startswith("Bearer")
    assert wrong == []


BATCH = {
    "creator": (403, "forbidden"),
    "member": (403, "forbidden"),
    "author": (200, None),
    "former": (404, "not_found"),
    "stranger": (404, "not_found"),
}


@pytest.mark.parametrize("role", BATCH)
async def test_an_operation_of_a_batch_is_asked_the_same(scene: Scene, role: str) -> None:
    await scene.set()
    (result,) = await scene.people[role].ok("POST", "/sync/batch", scene.body("batch"))
    assert (result["status"], result["reason"]) == BATCH[role]


async def test_each_sees_his_own_books_and_no_others(scene: Scene) -> None:
    await scene.set()
    seen = {}
    for role in ("creator", "member", "author", "former", "stranger"):
        person = scene.people[role]
        listed = [book["_id"] for book in await person.ok("GET", "/books/")]
        shown = [book["_id"] for book in (await person.pulls())["books"] if book["action"] != "delete"]
        assert sorted(listed) == sorted(shown)
        seen[role] = scene.book["_id"] in listed
    assert seen == {"creator": True, "member": True, "author": True, "former": False, "stranger": False}


async def test_a_former_member_cannot_touch_his_own_bill(scene: Scene) -> None:
    await scene.set()
    author = scene.people["author"]
    await author.leaves(scene.book)
    for method, path, what in (
        ("PUT", "/bills/{bill}", "changed bill"),
        ("DELETE", "/bills/{bill}", " "),
        ("GET", "/images/{image}", " "),
        ("DELETE", "/images/{image}", " "),
        ("POST", "/images/upload", "image"),
    ):
        said = await requested(scene, author, method, scene.url(path, "author"), what)
        assert (said.status_code, said.json()["reason"]) == (404, "not_found"), (method, path)
    bills = (await scene.people["creator"].ok("GET", scene.url("/bills/?book_id={book}", "creator")))["bills"]
    assert [bill["_id"] for bill in bills] == [scene.bill["_id"]], "it stays with the book"
