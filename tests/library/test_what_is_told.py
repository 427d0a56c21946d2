"""Appendix A and C of the seed: what is logged and counted, and how often one may ask."""

from __future__ import annotations

import json
from io import StringIO

import pytest

from holdfast.log import configure
from holdfast.settings import Log, Settings
from holdfast.store import Query
from tests.library.conftest import Device, House, Json, OpenHouse, part, score, update
from tests.library.pdfs import pdf


@pytest.fixture
def lines() -> StringIO:
    out = StringIO()
    configure(Log(level="debug", format="json"), out)
    return out


def told(lines: StringIO, event: str) -> list[Json]:
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [line for line in found if line["event"] == event]


async def test_pull_and_push_are_info_with_counts(ann: Device, lines: StringIO) -> None:
    await ann.push(0, scores=[score("a", "A"), score("b", "B")])
    await ann.pull(1)
    (push,), (pull,) = told(lines, "push"), told(lines, "pull")
    assert (push["level"], push["userId"], push["clientVersion"], push["changes"]) == ("info", 7, 0, 2)
    assert (pull["level"], pull["userId"], pull["since"], pull["returned"]) == ("info", 7, 1, 1)


async def test_a_version_conflict_is_a_warning_with_both_versions(ann: Device, lines: StringIO) -> None:
    await ann.push(0, scores=[score("a", "A")])
    await ann.refused(412, "version_conflict", 0, scores=[score("b")])
    (line,) = told(lines, "version_conflict")
    assert (line["level"], line["userId"], line["clientVersion"], line["serverVersion"]) == (
        "warning",
        7,
        0,
        1,
    )


async def test_a_deletion_is_debug_with_its_key_and_its_cascade(ann: Device, lines: StringIO) -> None:
    ids = await ann.push(0, scores=[score("a", "A")], instrumentScores=[part("A", "v"), part("A", "w")])
    key = f"score:{ids['serverIdMapping']['A']}"
    await ann.push(3, deletes=[key])
    (line,) = told(lines, "deleted")
    assert (line["level"], line["deleteKey"], line["cascaded"]) == ("debug", key, 2)


async def test_an_ignored_change_and_a_foreign_library_are_told(
    house: House, ann: Device, lines: StringIO
) -> None:
    await ann.push(0, scores=[update("score", 99, "X", title="x")])
    (line,) = told(lines, "change_ignored")
    assert (line["what"], line["userId"]) == ("score:X", 7)
    said = await house.http.get("/library/pull", params={"userId": 8}, headers=ann.headers)
    assert said.status_code == 403
    (line,) = told(lines, "foreign_library")
    assert (line["userId"], line["asked"]) == (7, 8)


async def test_a_mistake_of_ours_is_an_error_with_its_stack_and_tells_the_client_nothing(
    ann: Device, lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.library.actions._write", lambda *_: 1 / 0)
    said = await ann.push_raw({"clientLibraryVersion": 0, "scores": [score("a")]})
    assert (said.status_code, said.json()["success"], "ZeroDivision" in said.text) == (500, False, False)
    (line,) = told(lines, "request_failed")
    assert line["level"] == "error"
    assert "ZeroDivisionError" in line["exception"]
    assert line["request_id"] == said.headers["x-request-id"]


async def test_no_line_holds_a_title_a_token_or_what_is_in_a_file(ann: Device, lines: StringIO) -> None:
    secret = "Sonata of the unlogged"
    await ann.push(0, scores=[score(secret, "A")])
    await ann.upload(pdf() + secret.encode())
    await ann.pull()
    await ann.refused(400, "invalid_change", 1, scores=[score("x", "B", composer=[secret])])
    assert secret not in lines.getvalue()
    assert "Bearer" not in lines.getvalue()


async def test_a_user_may_ask_100_times_a_minute_and_files_600_times(open_house: OpenHouse) -> None:
    async with open_house(Settings()) as house:
        ann, bob = house.device(7), house.device(8)
        for _ in range(100):
            await ann.pull()
        said = await ann.push_raw({"clientLibraryVersion": 0})
        assert (said.status_code, said.json()["success"]) == (429, False)
        assert int(said.headers["retry-after"]) >= 1
        assert await ann.known("0" * 32) == {"exists": False}
        await bob.pull()
        house.clock.advance(0.7)
        await ann.pull()


async def test_metrics_count_what_passed(house: House, ann: Device) -> None:
    await ann.push(0, {"Idempotency-Key": "k"}, scores=[score("a", "A"), score("b", "B")])
    await ann.push(0, {"Idempotency-Key": "k"}, scores=[score("a", "A"), score("b", "B")])
    await ann.refused(412, "version_conflict", 0)
    await ann.refused(409, "file_missing", 2, instrumentScores=[part("A", "v", pdfHash="0" * 32)])
    await ann.pull()
    text = house.metrics.exposition().decode()
    for line in (
        'holdfast_library_pushes_total{outcome="accepted"} 1.0',
        'holdfast_library_pushes_total{outcome="replayed"} 1.0',
        'holdfast_library_pushes_total{outcome="conflict"} 1.0',
        'holdfast_library_pushes_total{outcome="refused"} 1.0',
        "holdfast_library_changes_total 2.0",
        "holdfast_library_pulled_total 2.0",
    ):
        assert line in text


async def test_when_a_library_was_pulled_last_is_written_beside_the_readers_way(
    house: House, ann: Device
) -> None:
    await ann.push(0, scores=[score("a")])
    await ann.pull()
    synced = Query(tuple[int, int], "SELECT user_id, synced_ms FROM library_sync")
    assert await house.db.read(lambda view: view.rows(synced)) == []
    assert await house.room.library.write_syncs() == 1
    assert await house.db.read(lambda view: view.rows(synced)) == [(7, house.clock.now_ms())]
    modified = Query(int, "SELECT modified_ms FROM library WHERE user_id = 7")
    assert await house.db.read(lambda view: view.one(modified)) == house.clock.now_ms()
    assert await house.room.library.write_syncs() == 0
