"""What the seed leaves open: parents by the client's own names, revival, keys that change hands, what is refused."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from tests.library.conftest import (
    UNLIMITED,
    Device,
    House,
    OpenHouse,
    change,
    entry,
    part,
    score,
    setlist,
    update,
    versions,
)
from tests.library.shared import ann, bob, house, stores

__all__ = ["ann", "bob", "house", "stores"]  # the fixtures of this module

pytestmark = pytest.mark.asyncio(loop_scope="module")

# -- parents


async def test_a_parent_may_be_named_as_an_earlier_push_named_it(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("s", "S")], setlists=[setlist("l", "L")]))["serverIdMapping"]
    await ann.push(2, instrumentScores=[part("S", "Violin")], setlistScores=[entry("L", "S")])
    found = await ann.pull(2)
    assert found["instrumentScores"][0]["data"]["scoreId"] == ids["S"]
    assert found["setlistScores"][0]["data"] == {"setlistId": ids["L"], "scoreId": ids["S"], "orderIndex": 0}


async def test_a_second_device_may_use_its_own_name_for_what_it_updated(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("s", "theirs")]))["serverIdMapping"]
    await ann.push(1, scores=[update("score", ids["theirs"], "mine", bpm=1)])
    done = await ann.push(2, instrumentScores=[part("mine", "Violin", "I")])
    assert done["accepted"] == ["I"]


async def test_a_server_id_in_digits_is_a_server_id(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("s", "S")]))["serverIdMapping"]
    assert (await ann.push(1, instrumentScores=[part(str(ids["S"]), "Violin", "I")]))["accepted"] == ["I"]


@pytest.mark.parametrize("how", ["update", "create", "create again"])
async def test_a_child_that_comes_to_life_brings_its_parents_along(ann: Device, how: str) -> None:
    ids = (
        await ann.push(
            0,
            scores=[score("s", "S", bpm=9)],
            setlists=[setlist("l", "L")],
            setlistScores=[entry("L", "S", "E")],
        )
    )["serverIdMapping"]
    await ann.push(3, deletes=[f"score:{ids['S']}", f"setlist:{ids['L']}"])
    assert len((await ann.pull())["deleted"]) == 3
    name = {"update": "E", "create": "new", "create again": "E"}[how]
    one = entry(ids["L"], ids["S"], name)
    done = await ann.push(
        6, setlistScores=[update("setlistScore", ids["E"], "E") if how == "update" else one]
    )
    assert (done["accepted"], done["newLibraryVersion"]) == ([name], 9)
    found = await ann.pull(6)
    assert found["deleted"] == []
    assert versions(found) == {
        f"score:{ids['S']}": 8,
        f"setlist:{ids['L']}": 7,
        f"setlistScore:{ids['E']}": 9,
    }
    assert found["scores"][0]["data"] == {"title": "s", "bpm": 9}


async def test_a_revived_parent_whose_key_was_taken_meanwhile_is_409_and_names_the_child(ann: Device) -> None:
    ids = (
        await ann.push(0, scores=[score("a", "A"), score("b", "B")], instrumentScores=[part("A", "v", "I")])
    )["serverIdMapping"]
    await ann.push(3, deletes=[f"score:{ids['A']}"])
    await ann.push(5, scores=[update("score", ids["B"], title="a")])
    said = await ann.refused(
        409, "key_taken", 6, instrumentScores=[update("instrumentScore", ids["I"], "mine")]
    )
    assert said["entityId"] == "mine"


async def test_a_parent_that_this_push_deletes_takes_its_new_child_with_it(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("s", "S")]))["serverIdMapping"]
    done = await ann.push(1, instrumentScores=[part("S", "v", "I")], deletes=[f"score:{ids['S']}"])
    assert done["newLibraryVersion"] == 4
    assert len((await ann.pull())["deleted"]) == 2


# -- keys


async def test_two_scores_may_swap_their_titles(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B"), score("c", "C")]))["serverIdMapping"]
    await ann.push(
        3,
        scores=[
            update("score", ids["A"], title="b"),
            update("score", ids["B"], title="c"),
            update("score", ids["C"], title="a"),
        ],
    )
    titles = {item["serverId"]: item["data"]["title"] for item in (await ann.pull())["scores"]}
    assert titles == {ids["A"]: "b", ids["B"]: "c", ids["C"]: "a"}


async def test_only_the_final_state_counts(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    await ann.push(
        2,
        scores=[
            update("score", ids["A"], title="b"),
            update("score", ids["A"], title="c"),
            score("a", "new"),
        ],
    )
    titles = sorted(item["data"]["title"] for item in (await ann.pull())["scores"])
    assert titles == ["a", "b", "c"]


async def test_parts_may_swap_names_and_move_between_scores(ann: Device) -> None:
    ids = (
        await ann.push(
            0,
            scores=[score("s", "S"), score("t", "T")],
            instrumentScores=[part("S", "v", "A"), part("T", "v", "B")],
        )
    )["serverIdMapping"]
    await ann.push(
        4,
        instrumentScores=[
            update("instrumentScore", ids["A"], scoreId=ids["T"]),
            update("instrumentScore", ids["B"], scoreId="S"),
        ],
    )
    of = {item["serverId"]: item["data"]["scoreId"] for item in (await ann.pull())["instrumentScores"]}
    assert of == {ids["A"]: ids["T"], ids["B"]: ids["S"]}


@pytest.mark.parametrize("first", [True, False], ids=["created first", "created last"])
async def test_a_key_that_is_let_go_may_be_taken_by_something_new_whatever_comes_first(
    ann: Device, first: bool
) -> None:
    """A client renames one score, and makes another under the old title: they are two, in either order."""
    old = (await ann.push(0, scores=[score("a", "A", bpm=1)]))["serverIdMapping"]["A"]
    changes = [score("a", "new", bpm=2), update("score", old, title="b")]
    done = await ann.push(1, scores=changes if first else changes[::-1])
    assert done["serverIdMapping"]["new"] != old
    titles = {item["data"]["title"]: item["data"]["bpm"] for item in (await ann.pull())["scores"]}
    assert titles == {"a": 2, "b": 1}


async def test_something_new_under_the_key_of_what_this_push_deletes_is_not_deleted_with_it(
    ann: Device,
) -> None:
    old = (await ann.push(0, scores=[score("a", "A")], instrumentScores=[part("A", "v", "I")]))[
        "serverIdMapping"
    ]
    done = await ann.push(
        2, scores=[score("a", "new")], instrumentScores=[part("new", "v", "J")], deletes=[f"score:{old['A']}"]
    )
    found = await ann.pull()
    assert sorted(found["deleted"]) == sorted([f"score:{old['A']}", f"instrumentScore:{old['I']}"])
    living = [
        item["serverId"] for item in found["scores"] + found["instrumentScores"] if not item["isDeleted"]
    ]
    assert living == [done["serverIdMapping"]["new"], done["serverIdMapping"]["J"]]


async def test_a_grave_that_is_revived_under_another_title_is_no_match_for_its_old_one(ann: Device) -> None:
    old = (await ann.push(0, scores=[score("a", "A")]))["serverIdMapping"]["A"]
    await ann.push(1, deletes=[f"score:{old}"])
    done = await ann.push(2, scores=[score("a", "new"), update("score", old, title="b")])
    assert done["serverIdMapping"]["new"] != old


async def test_a_deleted_row_keeps_its_key_for_revival_and_blocks_no_rename(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    await ann.push(2, deletes=[f"score:{ids['A']}"])
    await ann.push(3, scores=[update("score", ids["B"], title="a")])
    said = await ann.refused(409, "key_taken", 4, scores=[update("score", ids["A"], "A", bpm=1)])
    assert said["entityId"] == "A"
    assert (await ann.pull())["libraryVersion"] == 4


async def test_a_collision_is_409_for_the_whole_push_and_names_the_entity(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    said = await ann.refused(
        409, "key_taken", 2, scores=[score("c"), update("score", ids["B"], "bad", title="a"), score("d")]
    )
    assert (said["entityId"], said["conflict"]) == ("bad", False)
    assert len((await ann.pull())["scores"]) == 2


async def test_two_rows_that_meet_under_a_new_key_are_a_collision_too(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    await ann.refused(
        409,
        "key_taken",
        2,
        scores=[update("score", ids["A"], title="x"), update("score", ids["B"], title="x")],
    )


async def test_the_same_create_twice_in_one_push_is_one_entity(ann: Device) -> None:
    done = await ann.push(0, scores=[score("a", "A"), score("a", "B"), score("a", "A", bpm=2)])
    assert len(set(done["serverIdMapping"].values())) == 1
    assert (done["accepted"], done["newLibraryVersion"]) == (["A", "B"], 3)
    (item,) = (await ann.pull())["scores"]
    assert (item["version"], item["data"]["bpm"]) == (3, 2)


# -- data


async def test_data_may_be_a_json_string(ann: Device) -> None:
    await ann.push(
        0, scores=[change("score", "create", None, "S", '{"title": "s", "more": [1, {"a": null}]}')]
    )
    assert (await ann.pull())["scores"][0]["data"] == {"title": "s", "more": [1, {"a": None}]}


async def test_what_an_update_does_not_mention_stays_and_null_empties(ann: Device) -> None:
    mine = (await ann.push(0, scores=[score("s", "S", composer="c", bpm=1, shelf="top")]))["serverIdMapping"][
        "S"
    ]
    await ann.push(1, scores=[update("score", mine, bpm=None, new=True)])
    assert (await ann.pull())["scores"][0]["data"] == {
        "title": "s", "composer": "c", "bpm": None, "shelf": "top", "new": True
    }  # fmt: skip


async def test_a_create_that_says_too_little_to_be_new_revives_a_dead_row_as_it_was(ann: Device) -> None:
    mine = (await ann.push(0, scores=[score("s", "S", composer="c")]))["serverIdMapping"]["S"]
    await ann.push(1, deletes=[f"score:{mine}"])
    await ann.push(2, scores=[change("score", "create", mine, "S", {"bpm": 5})])
    assert (await ann.pull())["scores"][0]["data"] == {"title": "s", "composer": "c", "bpm": 5}


async def test_a_create_by_name_over_a_dead_row_has_the_key_of_its_new_data(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("s", "S", composer="c"), score("s", "T")]))["serverIdMapping"]
    await ann.push(2, deletes=[f"score:{ids['S']}"])
    said = await ann.refused(409, "key_taken", 3, scores=[score("s", "S")])
    assert said["entityId"] == "S"
    await ann.push(3, scores=[score("s", "S", composer="d")])
    assert len((await ann.pull())["deleted"]) == 0


async def test_the_checksum_is_what_a_client_computes_from_its_copy(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")], setlists=[setlist("l", "L")]))[
        "serverIdMapping"
    ]
    await ann.push(3, deletes=[f"score:{ids['A']}"])
    lines = [f"score\n{ids['B']}\n2", f"setlist\n{ids['L']}\n3"]
    digest = sum(int.from_bytes(hashlib.sha256(line.encode()).digest()[:8]) for line in lines) % 2**64
    said = await ann.get("/library/checksum")
    assert said.json() == {"count": 2, "digest": f"{digest:016x}", "version": 4}


# -- refused


async def test_a_refusal_names_the_entity_in_the_words_of_the_library_and_changes_nothing(
    ann: Device,
) -> None:
    said = await ann.refused(400, "invalid_change", 0, scores=[score("s", "S"), score("", "bad")])
    assert (said["entityId"], said["conflict"]) == ("bad", False)
    assert "title" in said["errorMessage"]
    said = await ann.refused(400, "invalid_delete_key", 0, scores=[score("s", "S")], deletes=["book:1"])
    assert said["entityId"] == "book:1"
    assert (await ann.pull())["libraryVersion"] == 0


async def test_a_pull_that_makes_no_sense_is_400(house: House, ann: Device) -> None:
    for query in (
        "since=-1", "since=x", "since=9223372036854775808", "limit=0", "limit=1001", "userId=x", "userId=0"
    ):  # fmt: skip
        said = await house.http.get(f"/library/pull?{query}", headers=ann.headers)
        assert (said.status_code, said.json()["success"]) == (400, False), said.text


async def test_a_push_may_be_larger_than_other_bodies_but_not_without_bound(open_house: OpenHouse) -> None:
    limits = msgspec.structs.replace(UNLIMITED.limits, push_body=3_000_000)
    async with open_house(msgspec.structs.replace(UNLIMITED, limits=limits)) as house:
        ann = house.device()
        big = part("S", "v", "I", annotationsJson="x" * 2_000_000)
        await ann.push(0, scores=[score("s", "S")], instrumentScores=[big])
        more = part("S", "w", "J", annotationsJson="x" * 3_000_000)
        await ann.refused(413, "too_large", 2, instrumentScores=[more])
        (item,) = (await ann.pull())["instrumentScores"]
        assert len(item["data"]["annotationsJson"]) == 2_000_000


async def test_a_small_push_that_would_move_too_much_data_is_413_and_changes_nothing(
    ann: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [part("S", f"p{n}", f"P{n}", annotationsJson="x" * 1_000) for n in range(10)]
    ids = (await ann.push(0, scores=[score("s", "S")], instrumentScores=parts))["serverIdMapping"]
    monkeypatch.setattr("holdfast.library.actions.MOST_DATA", 5_000)
    touched = [update("instrumentScore", ids[f"P{n}"], orderIndex=n) for n in range(10)]
    for push in (
        {"instrumentScores": touched},
        {"deletes": [f"score:{ids['S']}"]},
        {"instrumentScores": parts},
    ):
        await ann.refused(413, "too_large", 11, **push)
    assert (await ann.pull())["libraryVersion"] == 11
    await ann.push(11, instrumentScores=touched[:3])
    await ann.push(14, deletes=[f"instrumentScore:{ids[f'P{n}']}" for n in range(4)])
    monkeypatch.undo()
    await ann.push(18, deletes=[f"score:{ids['S']}"])
