"""tus 1.0.0 as its specification has it: what each request must say, and what each answer."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httpx
import msgspec
import pytest

from tests.library.conftest import UNLIMITED, Device, House, OpenHouse, part, score
from tests.library.pdfs import colliding, md5, pdf
from tests.library.shared import ann, bob, house, stores

__all__ = ["ann", "bob", "house", "stores"]  # the fixtures of this module

pytestmark = pytest.mark.asyncio(loop_scope="module")

TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {"Content-Type": "application/offset+octet-stream"}


class Client:
    def __init__(self, device: Device) -> None:
        self.device = device

    async def send(
        self, method: str, path: str, headers: Mapping[str, str] = {}, content: bytes = b""
    ) -> httpx.Response:
        said = await self.device.http.request(
            method, path, headers={**self.device.headers, **TUS, **headers}, content=content
        )
        assert said.headers["tus-resumable"] == "1.0.0"
        return said

    async def create(self, headers: Mapping[str, str], content: bytes = b"") -> str:
        said = await self.send("POST", "/file/tus", headers, content)
        assert said.status_code == 201, said.text
        return said.headers["location"]

    async def patch(
        self, path: str, offset: int, content: bytes, headers: Mapping[str, str] = {}
    ) -> httpx.Response:
        return await self.send("PATCH", path, {**BYTES, "Upload-Offset": str(offset), **headers}, content)

    async def offset(self, path: str) -> int:
        said = await self.send("HEAD", path)
        assert (said.status_code, said.content, said.headers["cache-control"]) == (200, b"", "no-store")
        return int(said.headers["upload-offset"])


@pytest.fixture
def tus(ann: Device) -> Client:
    return Client(ann)


async def test_options_say_what_the_server_can_without_a_token(house: House) -> None:
    said = await house.http.options("/file/tus")
    assert said.status_code == 204
    assert said.headers["tus-version"] == "1.0.0"
    assert said.headers["tus-max-size"] == str(200 * 1024 * 1024)
    assert set(said.headers["tus-extension"].split(",")) == {
        "creation", "creation-with-upload", "creation-defer-length", "expiration", "checksum", "termination"
    }  # fmt: skip
    assert "sha1" in said.headers["tus-checksum-algorithm"].split(",")


async def test_an_upload_in_parts_becomes_a_file_with_its_last_part(
    tus: Client, ann: Device, house: House
) -> None:
    content = pdf(1, 10_000)
    path = await tus.create(
        {"Upload-Length": "10000", "Upload-Metadata": "filename d29ybGQ=,is_confidential"}
    )
    assert path.startswith("/file/tus/")
    assert await tus.offset(path) == 0
    said = await tus.patch(path, 0, content[:4_000])
    assert (said.status_code, said.headers["upload-offset"]) == (204, "4000")
    shown = await tus.send("HEAD", path)
    assert shown.headers["upload-length"] == "10000"
    assert shown.headers["upload-metadata"] == "filename d29ybGQ=,is_confidential"
    assert (
        parsedate_to_datetime(shown.headers["upload-expires"]).timestamp()
        == house.clock.now_ms() // 1000 + 24 * 3600
    )
    assert await ann.known(md5(content)) == {"exists": False}
    said = await tus.patch(path, 4_000, content[4_000:])
    assert (said.status_code, said.headers["upload-offset"], said.headers["upload-hash"]) == (
        204,
        "10000",
        md5(content),
    )
    assert await ann.known(md5(content)) == {"exists": True}
    await ann.push(0, scores=[score("s", "S")], instrumentScores=[part("S", "v", pdfHash=md5(content))])
    assert (await ann.download(md5(content))).content == content


async def test_the_last_part_sent_again_is_answered_again(tus: Client) -> None:
    content = pdf(1, 5_000)
    path = await tus.create({"Upload-Length": "5000"}, b"")
    await tus.patch(path, 0, content)
    assert (await tus.patch(path, 5_000, b"")).headers["upload-hash"] == md5(content)
    assert (await tus.patch(path, 0, content)).status_code == 409


async def test_creation_may_bring_the_first_bytes_or_all_of_them(tus: Client, ann: Device) -> None:
    content = pdf(1, 5_000)
    said = await tus.send("POST", "/file/tus", {"Upload-Length": "5000", **BYTES}, content[:2_000])
    assert (said.status_code, said.headers["upload-offset"]) == (201, "2000")
    assert (await tus.patch(said.headers["location"], 2_000, content[2_000:])).status_code == 204
    other = pdf(2, 5_000)
    said = await tus.send("POST", "/file/tus", {"Upload-Length": "5000", **BYTES}, other)
    assert (said.status_code, said.headers["upload-offset"], said.headers["upload-hash"]) == (
        201,
        "5000",
        md5(other),
    )


async def test_a_length_may_be_told_later_and_then_stays(tus: Client) -> None:
    content = pdf(1, 5_000)
    path = await tus.create({"Upload-Defer-Length": "1"})
    shown = await tus.send("HEAD", path)
    assert (shown.headers["upload-defer-length"], "upload-length" in shown.headers) == ("1", False)
    await tus.patch(path, 0, content[:2_000])
    said = await tus.patch(path, 2_000, content[2_000:3_000], {"Upload-Length": "5000"})
    assert said.status_code == 204
    assert (await tus.send("HEAD", path)).headers["upload-length"] == "5000"
    assert (await tus.patch(path, 3_000, content[3_000:])).headers["upload-hash"] == md5(content)


async def test_a_wrong_offset_is_409_and_a_wrong_type_415(tus: Client) -> None:
    path = await tus.create({"Upload-Length": "5000"})
    assert (await tus.patch(path, 1, b"x")).status_code == 409
    said = await tus.send("PATCH", path, {"Upload-Offset": "0", "Content-Type": "application/pdf"}, b"x")
    assert said.status_code == 415
    assert (await tus.send("PATCH", path, BYTES, b"x")).status_code == 400
    assert await tus.offset(path) == 0


async def test_without_the_version_it_is_412_and_says_which_one(ann: Device, house: House) -> None:
    for method, path in (("POST", "/file/tus"), ("HEAD", "/file/tus/x"), ("PATCH", "/file/tus/x")):
        for version in ({}, {"Tus-Resumable": "0.2.2"}):
            said = await house.http.request(method, path, headers={**ann.headers, **version})
            assert said.status_code == 412
            assert (said.headers["tus-version"], said.headers["tus-resumable"]) == ("1.0.0", "1.0.0")


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Upload-Length": "-1"}, {"Upload-Length": "x"}, {"Upload-Length": "5", "Upload-Defer-Length": "1"},
        {"Upload-Defer-Length": "2"}, {"Upload-Length": "99999999999999999999"},
        {"Upload-Length": "5", "Upload-Metadata": "x" * 5_000},
    ],
)  # fmt: skip
async def test_a_creation_that_makes_no_sense_is_400(tus: Client, headers: dict[str, str]) -> None:
    assert (await tus.send("POST", "/file/tus", headers)).status_code == 400


async def test_more_than_allowed_is_413(tus: Client) -> None:
    assert (await tus.send("POST", "/file/tus", {"Upload-Length": str(201 * 1024 * 1024)})).status_code == 413
    path = await tus.create({"Upload-Length": "5000"})
    assert (await tus.patch(path, 0, pdf(1, 5_001))).status_code == 413
    assert await tus.offset(path) == 0


async def test_an_upload_can_be_given_up(tus: Client, house: House) -> None:
    await house.blobs.collector.sweep()
    before = house.files()
    path = await tus.create({"Upload-Length": "5000"})
    await tus.patch(path, 0, pdf(1, 3_000))
    assert (await tus.send("DELETE", path)).status_code == 204
    assert (await tus.send("HEAD", path)).status_code == 404
    assert (await tus.patch(path, 3_000, b"x")).status_code == 404
    assert (await tus.send("DELETE", path)).status_code == 404
    await house.blobs.collector.sweep()
    assert (house.files(), house.leftovers()) == (before, [])


async def test_an_upload_expires_a_day_after_its_last_part(tus: Client, house: House) -> None:
    path = await tus.create({"Upload-Length": "5000"})
    house.clock.advance(23 * 3600)
    await tus.patch(path, 0, pdf(1, 3_000))
    house.clock.advance(23 * 3600)
    assert await tus.offset(path) == 3_000
    house.clock.advance(2 * 3600)
    assert (await tus.send("HEAD", path)).status_code == 404
    await house.blobs.collector.sweep()
    assert not [name for name in house.files() if name.startswith("pieces/")]


async def test_somebody_elses_upload_is_404(tus: Client, bob: Device) -> None:
    path = await tus.create({"Upload-Length": "5000"})
    theirs = Client(bob)
    for method in ("HEAD", "DELETE"):
        assert (await theirs.send(method, path)).status_code == 404
    assert (await theirs.patch(path, 0, b"%PDF-")).status_code == 404
    assert await tus.offset(path) == 0


@pytest.mark.parametrize("algorithm", ["sha1", "md5", "sha256"])
async def test_bytes_with_a_wrong_checksum_are_460_and_not_kept(tus: Client, algorithm: str) -> None:
    content = pdf(1, 5_000)
    path = await tus.create({"Upload-Length": "5000"})
    good = b64encode(hashlib.new(algorithm, content[:3_000]).digest()).decode()
    said = await tus.patch(path, 0, content[:2_999] + b"?", {"Upload-Checksum": f"{algorithm} {good}"})
    assert said.status_code == 460
    assert await tus.offset(path) == 0
    said = await tus.patch(path, 0, content[:3_000], {"Upload-Checksum": f"{algorithm} {good}"})
    assert (said.status_code, await tus.offset(path)) == (204, 3_000)


@pytest.mark.parametrize("checksum", ["crc32 AAAA", "sha1", "sha1 ?", ""])
async def test_a_checksum_that_cannot_be_read_is_400(tus: Client, checksum: str) -> None:
    path = await tus.create({"Upload-Length": "5000"})
    assert (await tus.patch(path, 0, b"%PDF-", {"Upload-Checksum": checksum})).status_code == 400
    assert await tus.offset(path) == 0


async def test_what_is_not_a_pdf_is_415_at_its_end_and_leaves_nothing(tus: Client, house: House) -> None:
    await house.blobs.collector.sweep()
    before = house.files()
    path = await tus.create({"Upload-Length": "5000"})
    assert (await tus.patch(path, 0, bytes(5_000))).status_code == 415
    assert (await tus.send("HEAD", path)).status_code == 404
    assert (await tus.send("POST", "/file/tus", {"Upload-Length": "0"})).status_code == 415
    await house.blobs.collector.sweep()
    assert (house.files(), house.leftovers()) == (before, [])


async def test_a_collision_is_409_and_leaves_what_is_there(tus: Client, bob: Device, house: House) -> None:
    mine, theirs = colliding()
    await bob.upload(mine)
    path = await tus.create({"Upload-Length": str(len(theirs))})
    assert (await tus.patch(path, 0, theirs)).status_code == 409
    assert (await tus.send("HEAD", path)).status_code == 404
    await house.blobs.collector.collect()
    assert hashlib.sha256(mine).hexdigest() in house.files()
    assert hashlib.sha256(theirs).hexdigest() not in house.files()


async def test_a_client_that_cannot_patch_may_post(tus: Client) -> None:
    path = await tus.create({"Upload-Length": "5000"})
    override = {"X-HTTP-Method-Override": "PATCH", **BYTES, "Upload-Offset": "0"}
    assert (await tus.send("POST", path, override, pdf(1, 3_000))).status_code == 204
    assert await tus.offset(path) == 3_000
    assert (await tus.send("POST", path, {"X-HTTP-Method-Override": "DELETE"})).status_code == 204
    assert (await tus.send("HEAD", path)).status_code == 404
    assert (await tus.send("POST", path)).status_code == 400


async def test_an_upload_that_was_complete_when_the_server_died_becomes_a_file_when_asked_for(
    tus: Client, ann: Device, house: House
) -> None:
    content = pdf(78, 5_000)
    path = await tus.create({"Upload-Length": "5000"})

    async def bytes_() -> object:
        yield content

    await house.blobs.resumable.append(path.rpartition("/")[2], 0, bytes_())
    said = await tus.send("HEAD", path)
    assert (said.headers["upload-offset"], said.headers["upload-hash"]) == ("5000", md5(content))
    assert await ann.known(md5(content)) == {"exists": True}


async def test_the_limit_is_the_settings(open_house: OpenHouse) -> None:
    limits = msgspec.structs.replace(UNLIMITED.limits, pdf=1_000)
    async with open_house(msgspec.structs.replace(UNLIMITED, limits=limits)) as house:
        assert (await house.http.options("/file/tus")).headers["tus-max-size"] == "1000"
        tus = Client(house.device())
        assert (await tus.send("POST", "/file/tus", {"Upload-Length": "1001"})).status_code == 413
