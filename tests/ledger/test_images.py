"""Images: streamed in, told by their content, read by members; a deleted bill's go, a shared file stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.ledger.check import references
from holdfast.settings import Limits
from tests.ledger.conftest import OpenHouse
from tests.ledger.house import UNLIMITED, House, Person, Refused, new_id, together

JPEG = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 20
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


async def refused(person: Person, bill: Any, content: bytes, **fields: str) -> Refused:
    with pytest.raises(Refused) as caught:
        await person.adds_image(bill, content, **fields)
    return caught.value


def stored_files(home: House) -> list[Path]:
    """What the data folder holds of files, finished or not."""
    folder = home.app.folder.blobs
    return [path for path in folder.rglob("*") if path.is_file() and path.name not in ("owner", "lock")]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - the server does not tell us
            await asyncio.sleep(0.01)


async def no_file_is_left(home: House, left: int = 0) -> None:
    """The collector works beside us; a file goes a moment after its last reference."""
    async with asyncio.timeout(20):
        while len([path for path in stored_files(home) if path.parent.name != "incoming"]) > left:
            await home.app.blobs.collector.sweep()
            await asyncio.sleep(0.02)


async def test_what_was_uploaded_can_be_read_by_members(home: House) -> None:
    ann, bob = await home.people(2)
    book = await together(ann, bob)
    bill = await ann.makes_bill(book)
    image = await ann.adds_image(bill, JPEG, _id=new_id())
    assert {key: image[key] for key in ("bill_id", "book_id", "md5", "size", "mime", "ext", "crt_user")} == {
        "bill_id": bill["_id"],
        "book_id": book["_id"],
        "md5": md5(JPEG).hexdigest(),
        "size": len(JPEG),
        "mime": "image/jpeg",
        "ext": "jpg",
        "crt_user": ann.id,
    }
    assert image["image_id"] == image["_id"]
    said = await bob.ask("GET", image["online_path"].removeprefix("/api/v1"))
    assert (said.status_code, said.content) == (200, JPEG)
    assert said.headers["content-type"] == "image/jpeg"
    assert said.headers["x-content-type-options"] == "nosniff"
    page = await bob.pulls()
    assert [bill["images"] for bill in page["bills"]] == [[image["_id"]]]
    assert page["bills"][0]["upd_time"] > bill["upd_time"], "its images are part of a bill"
    assert [found["_id"] for found in page["images"]] == [image["_id"]]


async def test_the_older_name_of_the_upload_works_too(quick_home: House) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    image = await ann.ok("POST", "/image/upload", data={"bill_id": bill["_id"]}, files={"file": ("a", PNG)})
    assert (image["mime"], image["ext"]) == ("image/png", "png")


async def test_an_upload_sent_twice_is_one_image(home: House) -> None:
    ann, bob = await home.people(2)
    book = await together(ann, bob)
    bill, id_ = await ann.makes_bill(book), new_id()
    answers = await asyncio.gather(*[ann.adds_image(bill, JPEG, _id=id_) for _ in range(4)])
    assert all(answer == answers[0] for answer in answers)
    assert (await ann.pulls())["bills"][0]["images"] == [id_]
    other = await refused(ann, bill, PNG, _id=id_)
    assert (other.why, other.data["md5"]) == ((409, "exists_mine"), answers[0]["md5"])
    assert (await refused(bob, await bob.makes_bill(book), JPEG, _id=id_)).why == (409, "id_conflict")
    await ann.ok("DELETE", f"/images/{id_}")
    await ann.ok("DELETE", f"/images/{id_}")
    assert (await refused(ann, bill, JPEG, _id=id_)).why == (404, "deleted")
    await no_file_is_left(home)


async def test_without_an_id_a_key_makes_an_upload_repeatable(quick_home: House) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    ask = {"data": {"bill_id": bill["_id"]}, "headers": {"Idempotency-Key": "one"}}
    first = await ann.ok("POST", "/images/upload", files={"file": ("a", PNG)}, **ask)
    assert await ann.ok("POST", "/images/upload", files={"file": ("a", PNG)}, **ask) == first
    said = await ann.ask("POST", "/images/upload", files={"file": ("a", JPEG)}, **ask)
    assert (said.status_code, said.json()["reason"]) == (409, "idempotency_key_reused")


@pytest.mark.parametrize(
    "name",
    ["../../../etc/passwd", "..\\..\\x.jpg", "/etc/passwd", "a\x00b", "x" * 3_000, "con", "", ".", "ü\u202e"],
)
async def test_a_name_is_not_looked_at(quick_home: House, name: str) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    before = {path for path in quick_home.app.folder.path.parent.rglob("*") if path.is_file()}
    image = await ann.ok(
        "POST", "/images/upload", data={"bill_id": bill["_id"]}, files={"file": (name or "-", JPEG)}
    )
    said = await ann.ask("GET", f"/images/{image['_id']}")
    assert said.headers["content-disposition"] == f'inline; filename="{image["_id"]}.jpg"'
    after = {path for path in quick_home.app.folder.path.parent.rglob("*") if path.is_file()}
    assert [path.name.split(".")[0] for path in after - before] == [sha256(JPEG).hexdigest()]


@pytest.mark.parametrize(
    "path", ["..%2f..%2fholdfast.db", "%2e%2e", "x", "%00", "a" * 400, "9M4E2MR0UI3E8A215N4G"]
)
async def test_what_is_no_id_is_the_id_of_nothing(home: House, path: str) -> None:
    ann = await home.person()
    for method in ("GET", "DELETE"):
        assert (await ann.ask(method, f"/images/{path}")).status_code == 404


async def test_other_content_is_refused_whatever_it_says_it_is(quick_home: House) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    for content in (b"<html>", b"%PDF-1.7", b"", b"\x00" * 100, b"GIF88a" + b"x" * 100_000):
        files = {"file": ("photo.jpg", content, "image/jpeg")}
        said = await ann.ask("POST", "/images/upload", data={"bill_id": bill["_id"]}, files=files)
        assert (said.status_code, said.json()["reason"]) == (415, "wrong_type"), content[:10]
    assert stored_files(quick_home) == []


async def test_what_is_too_large_is_refused_and_leaves_nothing(open_house: OpenHouse) -> None:
    limits = Limits(**{**vars_of(UNLIMITED), "image": 100_000})
    async with open_house(limits=limits) as home:
        ann = await home.person()
        bill = await ann.makes_bill(await ann.makes_book())
        await ann.adds_image(bill, JPEG + b"x" * (100_000 - len(JPEG)))
        await no_file_is_left(home, 1)
        assert (await refused(ann, bill, JPEG + b"x" * (100_001 - len(JPEG)))).why == (413, "too_large")
        # without a Content-Length: what comes is counted
        said = await ann.ask("POST", "/images/upload", content=endless(bill), headers=FORM)
        assert (said.status_code, said.json()["reason"]) == (413, "too_large")
        assert len(stored_files(home)) == 1


FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def vars_of(limits: Limits) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in limits.__struct_fields__}


def form(bill: Any, content: bytes) -> bytes:
    return (
        f'--b\r\nContent-Disposition: form-data; name="bill_id"\r\n\r\n{bill["_id"]}\r\n'
        '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n'
    ).encode() + content


async def endless(bill: Any) -> Any:
    yield form(bill, JPEG)
    for _ in range(100):
        yield b"x" * 10_000


@pytest.mark.parametrize(
    "tail", [b"", b"\r\n", b"\r\n--b", b"\r\n--other--\r\n", b"\r\n--b\r\nContent-Dis"], ids=repr
)
async def test_a_form_that_is_cut_is_refused_and_leaves_nothing(quick_home: House, tail: bytes) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    said = await ann.ask("POST", "/images/upload", content=form(bill, JPEG) + tail, headers=FORM)
    assert (said.status_code, said.json()["reason"]) == (400, "malformed")
    assert stored_files(quick_home) == []


async def test_a_connection_that_is_cut_leaves_nothing(quick_home: House) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    host, _, port = quick_home.app.addresses["http"].rpartition(":")
    for _ in range(3):
        _, writer = await asyncio.open_connection(host, int(port))
        head = (
            f"POST /api/v1/images/upload HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ann.token}\r\n"
            f"content-type: multipart/form-data; boundary=b\r\ncontent-length: 9000000\r\n\r\n"
        )
        writer.write(head.encode() + form(bill, JPEG + bytes(5_000_000)))
        await writer.drain()
        await until(lambda: stored_files(quick_home) != [])
        writer.close()
        await until(lambda: stored_files(quick_home) == [])
    assert (await ann.pulls())["images"] == []


@pytest.mark.parametrize(
    ("fields", "files", "status", "reason"),
    [
        ({}, {"file": ("x", JPEG)}, 400, "invalid_field"),
        ({"bill_id": "nothing"}, {"file": ("x", JPEG)}, 404, "not_found"),
        ({"bill_id": "\x00"}, {"file": ("x", JPEG)}, 404, "not_found"),
        ({"bill_id": "BILL", "_id": "nothing"}, {"file": ("x", JPEG)}, 400, "invalid_field"),
        ({"bill_id": "BILL", "md5": "0" * 32}, {"file": ("x", JPEG)}, 409, "wrong_digest"),
        ({"bill_id": "BILL"}, {"other": ("x", JPEG)}, 400, "invalid_field"),
        ({"bill_id": "b" * 5_000}, {"file": ("x", JPEG)}, 413, "too_large"),
    ],
)
async def test_a_form_with_wrong_fields_is_refused_and_leaves_nothing(
    home: House, fields: dict[str, str], files: Any, status: int, reason: str
) -> None:
    ann = await home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    data = {name: bill["_id"] if value == "BILL" else value for name, value in fields.items()}
    said = await ann.ask("POST", "/images/upload", data=data, files=files)
    assert (said.status_code, said.json()["reason"]) == (status, reason), said.text
    await no_file_is_left(home)


async def test_a_body_that_is_no_form_is_refused(quick_home: House) -> None:
    ann = await quick_home.person()
    for kind, status in (
        ("application/json", 415),
        ("text/plain", 415),
        ("multipart/form-data", 400),
        ("multipart/form-data; boundary=", 400),
    ):
        said = await ann.ask("POST", "/images/upload", content=b"{}", headers={"Content-Type": kind})
        assert said.status_code == status, (kind, said.text)


async def test_a_md5_that_is_right_is_accepted(quick_home: House) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    await ann.adds_image(bill, JPEG, md5=md5(JPEG).hexdigest().upper())


async def test_a_bill_has_no_more_images_than_the_setting_says(open_house: OpenHouse) -> None:
    from holdfast.settings import Ledger

    async with open_house(ledger=Ledger(images_per_bill=2)) as home:
        ann = await home.person()
        bill = await ann.makes_bill(await ann.makes_book())
        images = [await ann.adds_image(bill, JPEG), await ann.adds_image(bill, PNG)]
        assert (await refused(ann, bill, JPEG)).why == (409, "bill_full")
        await ann.ok("DELETE", f"/images/{images[0]['_id']}")
        await ann.adds_image(bill, JPEG)


# -- reading


@pytest.mark.parametrize(
    ("wanted", "status", "part"),
    [
        ("bytes=0-3", 206, slice(0, 4)),
        ("bytes=10-", 206, slice(10, None)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=0-999999", 206, slice(0, None)),
        ("bytes=-999999", 206, slice(0, None)),
        ("bytes=5124-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=9-3", 200, slice(0, None)),
        ("bytes=0-1,4-5", 200, slice(0, None)),
        ("bytes=x", 200, slice(0, None)),
        ("lines=0-3", 200, slice(0, None)),
        ("bytes=" + "9" * 30 + "-", 200, slice(0, None)),
    ],
)
async def test_a_range_of_a_file(quick_home: House, wanted: str, status: int, part: slice | None) -> None:
    ann = await quick_home.person()
    image = await ann.adds_image(await ann.makes_bill(await ann.makes_book()), JPEG)
    said = await ann.ask("GET", f"/images/{image['_id']}", headers={"Range": wanted})
    assert said.status_code == status
    if part is None:
        assert said.headers["content-range"] == f"bytes */{len(JPEG)}"
        assert said.json()["reason"] == "range_not_satisfiable"
        return
    assert said.content == JPEG[part]
    if status == 206:
        first = range(len(JPEG))[part][0]
        assert said.headers["content-range"] == f"bytes {first}-{first + len(said.content) - 1}/{len(JPEG)}"


async def test_a_file_that_the_client_has_is_not_sent_again(quick_home: House) -> None:
    ann = await quick_home.person()
    image = await ann.adds_image(await ann.makes_bill(await ann.makes_book()), JPEG)
    path = f"/images/{image['_id']}"
    etag = (await ann.ask("GET", path)).headers["etag"]
    for tag, status in ((etag, 304), (f"W/{etag}", 304), (f'"x", {etag}', 304), ("*", 304), ('"x"', 200)):
        said = await ann.ask("GET", path, headers={"If-None-Match": tag})
        assert (said.status_code, len(said.content)) == (status, len(JPEG) if status == 200 else 0)
        assert said.headers["etag"] == etag
    for tag, status in ((etag, 206), ('"x"', 200), (f"W/{etag}", 200)):
        said = await ann.ask("GET", path, headers={"Range": "bytes=0-0", "If-Range": tag})
        assert said.status_code == status


# -- going


async def test_a_deleted_bills_images_go_and_a_shared_file_stays(home: House) -> None:
    ann, bob = await home.people(2)
    book = await together(ann, bob)
    lunch, dinner = await ann.makes_bill(book), await bob.makes_bill(book)
    shared = [await ann.adds_image(lunch, JPEG), await bob.adds_image(dinner, JPEG)]
    own = await ann.adds_image(lunch, PNG)
    since = (await bob.pulls())["server_time"]
    assert len({path.name for path in stored_files(home)}) == 2
    await ann.ok("DELETE", f"/bills/{lunch['_id']}")
    page = await bob.pulls(since)
    gone = [(found["_id"], found["action"]) for found in page["bills"] + page["images"]]
    assert sorted(gone) == sorted([(id_, "delete") for id_ in (lunch["_id"], shared[0]["_id"], own["_id"])])
    await no_file_is_left(home, 1)
    for image in (shared[0], own):
        assert (await bob.ask("GET", f"/images/{image['_id']}")).json()["reason"] == "deleted"
    said = await bob.ask("GET", f"/images/{shared[1]['_id']}")
    assert (said.status_code, said.content) == (200, JPEG)
    assert await home.app.db.read(references) == {sha256(JPEG).hexdigest(): 1}


async def test_a_deleted_books_images_go_with_the_next_sweep(home: House) -> None:
    ann = await home.person()
    book = await ann.makes_book()
    for _ in range(3):
        await ann.adds_image(await ann.makes_bill(book), JPEG)
    await ann.ok("DELETE", f"/books/{book['_id']}")
    assert len(stored_files(home)) == 1
    await home.app.ledger._sweep()
    await no_file_is_left(home)
    assert await home.app.db.read(references) == {}


async def test_a_slow_reader_gets_his_file_and_the_server_goes_on(quick_home: House) -> None:
    ann = await quick_home.person()
    bill = await ann.makes_bill(await ann.makes_book())
    image = await ann.adds_image(bill, JPEG + bytes(3_000_000))
    async with quick_home.http.stream(
        "GET", image["online_path"], headers={"Authorization": f"Bearer {ann.token}"}
    ) as said:
        await ann.ok("DELETE", f"/images/{image['_id']}")  # it goes while it is read
        content = await asyncio.wait_for(said.aread(), 20)
    assert content == JPEG + bytes(3_000_000)


async def test_nothing_is_uploaded_for_whoever_may_not(quick_home: House) -> None:
    """Refused before the file has come, when the bill is named before it."""
    ann, bob = await quick_home.people(2)
    bill = await ann.makes_bill(await together(ann, bob))
    came: list[int] = []

    async def body() -> Any:
        yield form(bill, JPEG)
        for number in range(200):
            came.append(number)
            yield b"x" * 100_000

    try:
        said = await bob.ask("POST", "/images/upload", content=body(), headers=FORM)
        assert said.status_code == 403
    except httpx.TransportError:
        pass  # the door was closed in the middle of it
    assert len(came) < 200
