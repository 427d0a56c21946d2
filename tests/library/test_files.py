"""Section 5 of the seed, and what it is silent about: who may refer to a file, who may read it, when it goes."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote

import msgspec

from holdfast.settings import Settings
from tests.library.conftest import ANN, BOB, UNLIMITED, Device, House, OpenHouse, part, score, update
from tests.library.pdfs import colliding, md5, pdf

GRACE_SECONDS = 24 * 3600


def with_instant_upload(mode: str) -> Settings:
    return msgspec.structs.replace(
        UNLIMITED, files=msgspec.structs.replace(UNLIMITED.files, instant_upload=mode)
    )


async def refer(device: Device, hash_: str, at: int = 0, title: str = "s") -> int:
    """A score with one instrument score that names the file; the id of the instrument score."""
    done = await device.push(
        at, scores=[score(title, "S")], instrumentScores=[part("S", "Violin", "I", pdfHash=hash_)]
    )
    found: int = done["serverIdMapping"]["I"]
    return found


# -- upload


async def test_an_upload_is_found_by_its_md5_and_by_its_owner_alone(
    house: House, ann: Device, bob: Device
) -> None:
    hash_ = await ann.upload(pdf())
    assert await ann.known(hash_) == {"exists": True}
    assert await ann.known(hash_.upper()) == {"exists": True}
    assert await bob.known(hash_) == {"exists": False, "claimable": True}
    assert await ann.known(md5(b"other")) == {"exists": False}


async def test_a_form_is_taken_as_well_as_a_plain_body(house: House, ann: Device) -> None:
    content = pdf(3, 300_000)
    said = await house.http.post(
        "/file/upload",
        headers=ann.headers,
        data={"note": "before"},
        files={"file": ("a.pdf", content, "application/pdf")},
    )
    assert (said.status_code, said.json()["hash"]) == (200, md5(content))
    assert house.files() == [sha256(content).hexdigest()]


async def test_what_is_not_a_pdf_is_415_and_leaves_nothing(house: House, ann: Device) -> None:
    for content in (b"", b"%PD", b"\x89PNG\r\n" + bytes(9_000), b"x" * 1_020 + b"%PDF-1.7"):
        said = await ann.upload_raw(content)
        assert (said.status_code, said.json()["reason"]) == (415, "wrong_type")
        assert (house.files(), house.leftovers()) == ([], [])


async def test_an_oversized_upload_is_413_and_leaves_nothing(open_house: OpenHouse) -> None:
    limits = msgspec.structs.replace(UNLIMITED.limits, pdf=100_000)
    async with open_house(msgspec.structs.replace(UNLIMITED, limits=limits)) as house:
        ann = house.device()
        for size in (100_001, 5_000_000):
            said = await ann.upload_raw(pdf(1, size))
            assert (said.status_code, said.json()["reason"]) == (413, "too_large")
        assert (house.files(), house.leftovers()) == ([], [])
        await ann.upload(pdf(1, 100_000))


async def test_a_form_without_a_file_or_cut_is_400(house: House, ann: Device) -> None:
    field = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nv\r\n--x--\r\n'
    for body in (b"", b"--x\r\n", field):
        said = await ann.upload_raw(body, "multipart/form-data; boundary=x")
        assert (said.status_code, said.json()["reason"]) == (400, "malformed")
    assert (await ann.upload_raw(b"", "multipart/form-data")).status_code == 400
    assert house.leftovers() == []


async def test_a_hash_that_is_none_is_400(ann: Device) -> None:
    for wrong in ("", "xyz", "0" * 31, "0" * 33, "g" * 32, "../../../../etc/passwd"):
        for said in (
            await ann.http.get(f"/file/checkHash?hash={quote(wrong)}", headers=ann.headers),
            await ann.http.get(f"/file/download?hash={quote(wrong)}", headers=ann.headers),
            await ann.claim_raw(hash=wrong),
        ):
            assert (said.status_code, said.json()["reason"]) == (400, "invalid_field")


async def test_every_door_of_the_files_asks_who_you_are(house: House) -> None:
    for said in (
        await house.http.get("/file/checkHash", params={"hash": "0" * 32}),
        await house.http.get("/file/download", params={"hash": "0" * 32}),
        await house.http.post("/file/upload", content=pdf()),
        await house.http.post("/file/claim", json={"hash": "0" * 32}),
        await house.http.post("/file/tus", headers={"Tus-Resumable": "1.0.0", "Upload-Length": "5"}),
    ):
        assert said.status_code == 401


async def test_what_was_said_about_a_hash_holds_for_a_second_but_not_against_ones_own_upload(
    house: House, ann: Device, bob: Device
) -> None:
    hash_ = md5(pdf())
    assert await ann.known(hash_) == await bob.known(hash_) == {"exists": False}
    await ann.upload(pdf())
    assert await ann.known(hash_) == {"exists": True}
    house.clock.advance(1)
    assert await bob.known(hash_) == {"exists": False, "claimable": True}
    await bob.claim(pdf())
    assert await bob.known(hash_) == {"exists": True}


# -- possession


async def test_knowing_a_hash_is_not_owning_a_file(house: House, ann: Device, bob: Device) -> None:
    hash_ = await ann.upload(pdf())
    await refer(ann, hash_)
    said = await bob.refused(
        409,
        "file_missing",
        0,
        scores=[score("s", "S")],
        instrumentScores=[part("S", "Violin", "mine", pdfHash=hash_)],
    )
    assert said["entityId"] == "mine"
    assert (await bob.pull())["libraryVersion"] == 0
    assert (await bob.download(hash_)).status_code == 404


async def test_a_push_that_names_a_file_that_is_not_here_is_409_and_changes_nothing(ann: Device) -> None:
    await ann.push(0, scores=[score("s", "S")])
    said = await ann.refused(
        409,
        "file_missing",
        1,
        scores=[score("t")],
        instrumentScores=[part("S", "a", "A"), part("S", "b", "B", pdfHash=md5(b"?"))],
    )
    assert said["entityId"] == "B"
    assert (await ann.pull())["libraryVersion"] == 1


async def test_whoever_proves_to_have_the_bytes_need_not_send_them(
    house: House, ann: Device, bob: Device
) -> None:
    content = pdf(2, 4_000_000)
    hash_ = await ann.upload(content)
    await refer(ann, hash_)
    said = await bob.claim(content)
    assert (said.status_code, said.json()) == (200, {"hash": hash_, "exists": True})
    assert await bob.known(hash_) == {"exists": True}
    await refer(bob, hash_)
    assert len(house.files()) == 1


async def test_a_proof_by_somebody_who_has_other_bytes_is_403(ann: Device, bob: Device) -> None:
    content = pdf(2)
    hash_ = await ann.upload(content)
    question = (await bob.claim_raw(hash=hash_)).json()
    assert (question["offset"], question["length"]) == (0, len(content))
    wrong = sha256(question["nonce"].encode() + bytes(len(content))).hexdigest()
    said = await bob.claim_raw(claimId=question["claimId"], sha256=wrong)
    assert (said.status_code, said.json()["reason"]) == (403, "proof_failed")
    assert await bob.known(hash_) == {"exists": False, "claimable": True}


async def test_a_user_is_always_asked_for_the_same_bytes_of_a_file_behind_another_word(
    ann: Device, bob: Device
) -> None:
    hash_ = await ann.upload(pdf(2, 5_000_000))
    asked = [(await bob.claim_raw(hash=hash_)).json() for _ in range(5)]
    assert len({(question["offset"], question["length"]) for question in asked}) == 1
    assert len({question["nonce"] for question in asked}) == 5
    assert asked[0]["length"] == 1024 * 1024


async def test_a_challenge_is_good_for_its_user_for_five_minutes_and_cannot_be_made_up(
    house: House, ann: Device, bob: Device
) -> None:
    content = pdf(2)
    hash_ = await ann.upload(content)
    question = (await bob.claim_raw(hash=hash_)).json()
    answer = sha256(question["nonce"].encode() + content).hexdigest()
    for said in (
        await ann.claim_raw(claimId=question["claimId"], sha256=answer),
        await bob.claim_raw(claimId=question["claimId"][:-4] + "AAAA", sha256=answer),
        await bob.claim_raw(claimId="", sha256=answer),
        await bob.claim_raw(claimId="ü", sha256=answer),
        await bob.claim_raw(sha256=answer),
    ):
        assert (said.status_code, said.json()["reason"]) == (400, "invalid_field")
    house.clock.advance(301)
    assert (await bob.claim_raw(claimId=question["claimId"], sha256=answer)).status_code == 400


async def test_a_file_that_nobody_has_cannot_be_claimed(ann: Device) -> None:
    assert (await ann.claim_raw(hash=md5(b"?"))).status_code == 404


async def test_open_believes_a_hash_as_the_seed_does(open_house: OpenHouse) -> None:
    async with open_house(with_instant_upload("open")) as house:
        ann, bob = house.device(ANN), house.device(BOB)
        hash_ = await ann.upload(pdf())
        assert await bob.known(hash_) == {"exists": True}
        await refer(bob, hash_)


async def test_off_asks_for_the_file(open_house: OpenHouse) -> None:
    async with open_house(with_instant_upload("off")) as house:
        ann, bob = house.device(ANN), house.device(BOB)
        hash_ = await ann.upload(pdf())
        assert await bob.known(hash_) == {"exists": False}
        assert (await bob.claim(pdf())).status_code == 404
        await bob.upload(pdf())
        await refer(bob, hash_)


async def test_another_file_with_the_same_md5_is_409_and_replaces_nothing(
    house: House, ann: Device, bob: Device
) -> None:
    mine, theirs = colliding()
    hash_ = await ann.upload(mine)
    await refer(ann, hash_)
    said = await bob.upload_raw(theirs)
    assert (said.status_code, said.json()["reason"]) == (409, "digest_taken")
    assert await bob.known(hash_) == {"exists": False, "claimable": True}
    assert (await bob.claim(theirs)).status_code == 403
    assert (await ann.download(hash_)).content == mine
    assert house.leftovers() == []


# -- references


async def test_two_users_share_one_copy_which_goes_with_the_last_reference(
    house: House, ann: Device, bob: Device
) -> None:
    content = pdf()
    hash_ = await ann.upload(content)
    await bob.upload(content)
    assert len(house.files()) == 1
    first, second = await refer(ann, hash_), await refer(bob, hash_)
    await ann.push(2, deletes=[f"instrumentScore:{first}"])
    await house.blobs.collector.collect()
    assert (await bob.download(hash_)).content == content
    assert (await ann.download(hash_)).status_code == 404
    await bob.push(2, deletes=[f"score:{second - 1}"])
    await house.blobs.collector.collect()
    assert house.files() == []


async def test_a_file_is_replaced_or_let_go_by_an_update(house: House, ann: Device) -> None:
    old, new = await ann.upload(pdf(1)), await ann.upload(pdf(2))
    mine = await refer(ann, old)
    await ann.push(2, instrumentScores=[update("instrumentScore", mine, orderIndex=3)])
    assert (await ann.download(old)).status_code == 200
    await ann.push(3, instrumentScores=[update("instrumentScore", mine, pdfHash=new.upper())])
    assert ((await ann.download(old)).status_code, (await ann.download(new)).content) == (404, pdf(2))
    await ann.push(4, instrumentScores=[update("instrumentScore", mine, pdfHash=None)])
    assert (await ann.download(new)).status_code == 404
    await house.blobs.collector.collect()
    assert house.files() == []


async def test_a_file_that_changes_hands_in_one_push_stays(house: House, ann: Device) -> None:
    hash_ = await ann.upload(pdf())
    mine = await refer(ann, hash_)
    await ann.push(
        2,
        scores=[score("t", "T")],
        instrumentScores=[part("T", "Viola", pdfHash=hash_)],
        deletes=[f"score:{mine - 1}"],
    )
    house.clock.advance(2 * GRACE_SECONDS)
    await house.blobs.collector.sweep()
    assert (await ann.download(hash_)).content == pdf()


async def test_a_revived_instrument_score_needs_its_file_again(house: House, ann: Device) -> None:
    hash_ = await ann.upload(pdf())
    mine = await refer(ann, hash_)
    await ann.push(2, deletes=[f"instrumentScore:{mine}"])
    house.clock.advance(2 * GRACE_SECONDS)
    await house.blobs.collector.sweep()
    await ann.refused(
        409, "file_missing", 3, instrumentScores=[update("instrumentScore", mine, orderIndex=1)]
    )
    await ann.upload(pdf())
    await ann.push(3, instrumentScores=[update("instrumentScore", mine, orderIndex=1)])
    assert (await ann.download(hash_)).content == pdf()


async def test_an_upload_that_nothing_refers_to_goes_after_a_day(house: House, ann: Device) -> None:
    await ann.upload(pdf())
    house.clock.advance(GRACE_SECONDS - 60)
    await house.blobs.collector.sweep()
    assert len(house.files()) == 1
    house.clock.advance(120)
    await house.blobs.collector.sweep()
    assert house.files() == []


async def test_a_claim_keeps_a_file_that_its_last_owner_lets_go(
    house: House, ann: Device, bob: Device
) -> None:
    content = pdf()
    hash_ = await ann.upload(content)
    mine = await refer(ann, hash_)
    house.clock.advance(2 * GRACE_SECONDS)
    assert (await bob.claim(content)).status_code == 200
    await ann.push(2, deletes=[f"instrumentScore:{mine}"])
    await house.blobs.collector.collect()
    await house.blobs.collector.sweep()
    await refer(bob, hash_)
    assert (await bob.download(hash_)).content == content
