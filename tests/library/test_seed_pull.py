"""Sections 4 and 7 of the seed: what a pull answers, and how deletions spread."""

from __future__ import annotations

import pytest

from tests.library.conftest import Device, entry, part, score, setlist, update, versions
from tests.library.shared import ann, bob, house, stores

__all__ = ["ann", "bob", "house", "stores"]  # the fixtures of this module

pytestmark = pytest.mark.asyncio(loop_scope="module")

# -- 4.1, 4.2


async def test_a_new_library_is_empty_at_version_0(ann: Device) -> None:
    found = await ann.pull()
    assert (found["libraryVersion"], found["isFullSync"], found["hasMore"], found["nextSince"]) == (
        0,
        True,
        False,
        0,
    )
    assert versions(found) == {}
    assert found["deleted"] == []


async def test_a_full_sync_holds_the_living_and_the_dead(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    await ann.push(2, deletes=[f"score:{ids['A']}"])
    found = await ann.pull(0)
    assert found["isFullSync"] is True
    assert {item["serverId"]: item["isDeleted"] for item in found["scores"]} == {
        ids["A"]: True,
        ids["B"]: False,
    }
    assert found["deleted"] == [f"score:{ids['A']}"]


async def test_a_pull_holds_what_is_newer_than_since_and_nothing_else(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B"), score("c", "C")]))["serverIdMapping"]
    await ann.push(3, scores=[update("score", ids["A"], bpm=1)])
    found = await ann.pull(2)
    assert found["isFullSync"] is False
    assert versions(found) == {f"score:{ids['C']}": 3, f"score:{ids['A']}": 4}
    assert (await ann.pull(4))["scores"] == []


async def test_an_item_has_the_fields_of_the_seed(ann: Device) -> None:
    done = await ann.push(0, scores=[score("a", "A", composer="c", bpm=60, shelf={"row": [1, 2.5, None]})])
    (item,) = (await ann.pull())["scores"]
    assert item == {
        "entityType": "score",
        "serverId": done["serverIdMapping"]["A"],
        "version": 1,
        "data": {"title": "a", "composer": "c", "bpm": 60, "shelf": {"row": [1, 2.5, None]}},
        "updatedAt": "2025-06-15T15:06:40.000Z",
        "isDeleted": False,
    }


async def test_since_above_the_version_or_another_epoch_is_a_full_sync(ann: Device) -> None:
    await ann.push(0, scores=[score("a"), score("b")])
    epoch = (await ann.pull())["epoch"]
    for found in (await ann.pull(3), await ann.pull(2, epoch="another")):
        assert found["isFullSync"] is True
        assert len(found["scores"]) == 2
    assert (await ann.pull(2, epoch=epoch))["isFullSync"] is False


async def test_pages_lead_to_the_same_as_one_answer_and_no_child_comes_without_its_parent(
    ann: Device,
) -> None:
    begun = await ann.push(
        0,
        scores=[score(f"s{n}", f"S{n}") for n in range(4)],
        instrumentScores=[part(f"S{n}", f"i{m}") for n in range(4) for m in range(3)],
        setlists=[setlist("l", "L")],
        setlistScores=[entry("L", f"S{n}") for n in range(4)],
    )
    ids = begun["serverIdMapping"]
    # parents that were changed after their children
    await ann.push(
        21, scores=[update("score", ids["S0"], bpm=1)], setlists=[update("setlist", ids["L"], x=1)]
    )
    whole = await ann.pull()
    since, collected, pages = 0, {}, 0
    while True:
        page = await ann.pull(since, limit=3)
        assert page["isFullSync"] is (since == 0)
        assert page["libraryVersion"] == 23
        collected |= versions(page)
        pages += 1
        for item in page["instrumentScores"] + page["setlistScores"]:
            assert f"score:{item['data']['scoreId']}" in collected
            assert "setlistId" not in item["data"] or f"setlist:{item['data']['setlistId']}" in collected
        if not page["hasMore"]:
            break
        since = page["nextSince"]
    assert collected == versions(whole)
    assert page["nextSince"] == 23
    assert pages == 7


# -- 7


async def test_deleting_a_score_takes_its_instrument_scores_and_then_its_setlist_scores(ann: Device) -> None:
    """7.3, from version 99: the score, A, B, then X."""
    ids = (
        await ann.push(
            0,
            scores=[score("1", "S")],
            instrumentScores=[part("S", "a", "A"), part("S", "b", "B")],
            setlists=[setlist("l", "L")],
            setlistScores=[entry("L", "S", "X")],
        )
    )["serverIdMapping"]
    await ann.push(5, setlists=[update("setlist", ids["L"], n=version) for version in range(5, 99)])
    await ann.push(99, deletes=[f"score:{ids['S']}"])
    assert versions(await ann.pull(99)) == {
        f"score:{ids['S']}": 100,
        f"instrumentScore:{ids['A']}": 101,
        f"instrumentScore:{ids['B']}": 102,
        f"setlistScore:{ids['X']}": 103,
    }


async def test_deleting_a_setlist_takes_its_entries_and_leaves_the_scores(ann: Device) -> None:
    ids = (
        await ann.push(
            0, scores=[score("s", "S")], setlists=[setlist("l", "L")], setlistScores=[entry("L", "S", "X")]
        )
    )["serverIdMapping"]
    await ann.push(3, deletes=[f"setlist:{ids['L']}"])
    assert versions(await ann.pull(3)) == {f"setlist:{ids['L']}": 4, f"setlistScore:{ids['X']}": 5}


async def test_deleting_a_child_takes_nothing_else(ann: Device) -> None:
    ids = (
        await ann.push(
            0,
            scores=[score("s", "S")],
            instrumentScores=[part("S", "a", "A")],
            setlists=[setlist("l", "L")],
            setlistScores=[entry("L", "S", "X")],
        )
    )["serverIdMapping"]
    await ann.push(4, deletes=[f"setlistScore:{ids['X']}", f"instrumentScore:{ids['A']}"])
    assert versions(await ann.pull(4)) == {f"setlistScore:{ids['X']}": 5, f"instrumentScore:{ids['A']}": 6}


async def test_a_deletion_takes_what_came_or_moved_under_it_in_the_same_push_and_spares_what_left(
    ann: Device,
) -> None:
    ids = (
        await ann.push(
            0,
            scores=[score("s", "S"), score("t", "T")],
            instrumentScores=[part("S", "leaves", "A"), part("T", "comes", "B")],
        )
    )["serverIdMapping"]
    done = await ann.push(
        4,
        instrumentScores=[
            update("instrumentScore", ids["A"], scoreId=ids["T"]),
            update("instrumentScore", ids["B"], scoreId=ids["S"]),
            part("S", "new", "C"),
        ],
        deletes=[f"score:{ids['S']}"],
    )
    dead = {
        f"score:{ids['S']}",
        f"instrumentScore:{ids['B']}",
        f"instrumentScore:{done['serverIdMapping']['C']}",
    }
    assert set((await ann.pull())["deleted"]) == dead


async def test_annotations_go_with_their_instrument_score_and_other_data_stays(ann: Device) -> None:
    """7.4"""
    ids = (
        await ann.push(
            0,
            scores=[score("s", "S")],
            instrumentScores=[part("S", "a", "A", annotationsJson='{"page":1}', orderIndex=2)],
        )
    )["serverIdMapping"]
    await ann.push(2, deletes=[f"instrumentScore:{ids['A']}"])
    (item,) = (await ann.pull())["instrumentScores"]
    assert item["data"] == {"scoreId": ids["S"], "instrumentName": "a", "orderIndex": 2}
