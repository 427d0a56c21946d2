"""Sections 2, 3 and 8 of the seed, with its own examples: what a push does, in which order, under which versions."""

from __future__ import annotations

import pytest

from tests.library.conftest import (
    Device,
    House,
    change,
    create,
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


async def library_at_100(ann: Device) -> dict[str, int]:
    """A library at version 100, with a score X that has one instrument score and stands on one setlist."""
    begun = await ann.push(
        0,
        scores=[score("X", "X")],
        instrumentScores=[part("X", "Violin", "Y")],
        setlists=[setlist("Concert", "L")],
        setlistScores=[entry("L", "X", "Z")],
    )
    ids: dict[str, int] = begun["serverIdMapping"]
    await ann.push(4, scores=[update("score", ids["X"], bpm=version) for version in range(4, 100)])
    return ids


# -- 3.3


async def test_two_scores_one_part_and_one_deletion_with_its_cascade_lead_from_100_to_106(
    ann: Device,
) -> None:
    ids = await library_at_100(ann)
    done = await ann.push(
        100,
        scores=[score("1", "S1"), score("2", "S2")],
        instrumentScores=[part("S1", "Flute", "I1")],
        deletes=[f"score:{ids['X']}"],
    )
    assert done["newLibraryVersion"] == 106
    new = done["serverIdMapping"]
    found = await ann.pull(100)
    assert versions(found) == {
        f"score:{new['S1']}": 101,
        f"score:{new['S2']}": 102,
        f"instrumentScore:{new['I1']}": 103,
        f"score:{ids['X']}": 104,
        f"instrumentScore:{ids['Y']}": 105,
        f"setlistScore:{ids['Z']}": 106,
    }
    assert sorted(found["deleted"]) == sorted(
        [f"score:{ids['X']}", f"instrumentScore:{ids['Y']}", f"setlistScore:{ids['Z']}"]
    )


async def test_phases_come_in_their_order_whatever_the_order_of_the_body(ann: Device) -> None:
    begun = await ann.push(0, scores=[score("old", "old")])
    done = await ann.push(
        1,
        deletes=[f"score:{begun['serverIdMapping']['old']}"],
        setlistScores=[entry("L", "S", "E")],
        setlists=[setlist("list", "L")],
        instrumentScores=[part("S", "Oboe", "I")],
        scores=[score("new", "S")],
    )
    new = done["serverIdMapping"]
    assert list(versions(await ann.pull(1)).items()) == [
        (f"score:{new['S']}", 2),
        (f"score:{begun['serverIdMapping']['old']}", 6),
        (f"instrumentScore:{new['I']}", 3),
        (f"setlist:{new['L']}", 4),
        (f"setlistScore:{new['E']}", 5),
    ]
    assert done["accepted"] == ["S", "I", "L", "E"]


async def test_a_change_that_says_delete_runs_in_the_delete_phase_and_is_answered_as_a_change(
    ann: Device,
) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    done = await ann.push(
        2,
        scores=[change("score", "delete", ids["A"], "A", None), score("c", "C")],
        deletes=[f"score:{ids['B']}"],
    )
    assert versions(await ann.pull(2)) == {
        f"score:{done['serverIdMapping']['C']}": 3,
        f"score:{ids['A']}": 4,
        f"score:{ids['B']}": 5,
    }
    assert sorted(done["accepted"]) == ["A", "C"]


async def test_a_deletion_by_the_clients_own_name_needs_no_server_id(ann: Device) -> None:
    await ann.push(0, scores=[score("a", "A")])
    assert (await ann.push(1, scores=[change("score", "delete", None, "A", None)]))["accepted"] == ["A"]
    assert len((await ann.pull(1))["deleted"]) == 1


# -- 3.1, 8.2


async def test_a_client_that_is_behind_gets_412_and_nothing_changes(ann: Device) -> None:
    await ann.push(0, scores=[score("a"), score("b")])
    said = await ann.refused(412, "version_conflict", 1, scores=[score("c")])
    assert (said["conflict"], said["serverLibraryVersion"]) == (True, 2)
    assert "reset" not in said
    assert (await ann.pull())["libraryVersion"] == 2


async def test_a_client_that_is_ahead_or_of_another_epoch_gets_412_with_reset(ann: Device) -> None:
    await ann.push(0, scores=[score("a")])
    ahead = await ann.refused(412, "version_conflict", 2, scores=[score("c")])
    other = await ann.refused(412, "version_conflict", 1, epoch="another", scores=[score("c")])
    for said in (ahead, other):
        assert (said["conflict"], said["reset"], said["serverLibraryVersion"]) == (True, True, 1)
    ours = (await ann.pull())["epoch"]
    await ann.push(1, epoch=ours, scores=[score("c")])


async def test_someone_elses_library_is_403_to_pull_and_to_push(
    house: House, ann: Device, bob: Device
) -> None:
    theirs, body = {"userId": bob.user}, {"clientLibraryVersion": 0}
    for said in (
        await house.http.get("/library/pull", params=theirs, headers=ann.headers),
        await house.http.post("/library/push", params=theirs, headers=ann.headers, json=body),
    ):
        assert (said.status_code, said.json()["success"], said.json()["reason"]) == (403, False, "forbidden")


async def test_without_a_token_it_is_401(house: House) -> None:
    assert (await house.http.get("/library/pull")).status_code == 401
    said = await house.http.post("/library/push", json={"clientLibraryVersion": 0})
    assert said.status_code == 401


# -- 3.4, 6.2


async def test_a_create_under_the_key_of_a_deleted_score_restores_it_with_its_id_and_new_data(
    ann: Device,
) -> None:
    first = (await ann.push(0, scores=[score("Nocturne", "A", composer="Chopin", bpm=60)]))[
        "serverIdMapping"
    ]["A"]
    await ann.push(1, deletes=[f"score:{first}"])
    again = await ann.push(2, scores=[score("Nocturne", "B", composer="Chopin", tempo="slow")])
    assert again["serverIdMapping"] == {"B": first}
    (item,) = (await ann.pull())["scores"]
    assert (item["version"], item["isDeleted"]) == (3, False)
    assert item["data"] == {"title": "Nocturne", "composer": "Chopin", "tempo": "slow"}


async def test_of_several_deleted_rows_with_the_key_the_latest_is_restored(ann: Device) -> None:
    ids = (await ann.push(0, scores=[score("a", "A"), score("b", "B")]))["serverIdMapping"]
    await ann.push(2, deletes=[f"score:{ids['A']}"])
    await ann.push(3, scores=[update("score", ids["B"], title="a")])
    await ann.push(4, deletes=[f"score:{ids['B']}"])
    again = await ann.push(5, scores=[score("a", "C")])
    assert again["serverIdMapping"] == {"C": ids["B"]}


async def test_a_create_under_the_key_of_a_living_score_updates_it(ann: Device) -> None:
    first = (await ann.push(0, scores=[score("Nocturne", "A", bpm=60, theirs=1)]))["serverIdMapping"]["A"]
    again = await ann.push(1, scores=[score("Nocturne", "B", bpm=72)])
    assert again["serverIdMapping"] == {"B": first}
    (item,) = (await ann.pull())["scores"]
    assert item["data"] == {"title": "Nocturne", "bpm": 72, "theirs": 1}


@pytest.mark.parametrize("composer", [{}, {"composer": None}, {"composer": ""}])
async def test_a_missing_composer_equals_an_empty_one(ann: Device, composer: dict[str, str | None]) -> None:
    first = await ann.push(0, scores=[score("Air", "A", composer="")])
    again = await ann.push(1, scores=[create("score", "B", title="Air", **composer)])
    assert again["serverIdMapping"]["B"] == first["serverIdMapping"]["A"]


async def test_the_unique_key_of_each_kind_is_the_one_of_the_seed(ann: Device, bob: Device) -> None:
    first = await ann.push(
        0,
        scores=[score("S", "S"), score("T", "T"), score("S", "S2", composer="other")],
        instrumentScores=[part("S", "Violin", "I"), part("T", "Violin", "I2"), part("S", "Viola", "I3")],
        setlists=[setlist("L", "L"), setlist("M", "M")],
        setlistScores=[entry("L", "S", "E"), entry("M", "S", "E2"), entry("L", "T", "E3")],
    )
    assert len(set(first["serverIdMapping"].values())) == 11
    again = await ann.push(
        11,
        scores=[score("S", "s"), score("T", "t")],
        instrumentScores=[part("s", "Violin", "i")],
        setlists=[setlist("L", "l")],
        setlistScores=[entry("l", "s", "e")],
    )
    pairs = [("s", "S"), ("t", "T"), ("i", "I"), ("l", "L"), ("e", "E")]
    for new, old in pairs:
        assert again["serverIdMapping"][new] == first["serverIdMapping"][old]
    theirs = await bob.push(0, scores=[score("S", "S")])
    assert theirs["serverIdMapping"]["S"] not in first["serverIdMapping"].values()


async def test_a_known_entity_id_is_the_same_entity_whatever_its_key(ann: Device) -> None:
    first = (await ann.push(0, scores=[score("a", "A")]))["serverIdMapping"]["A"]
    again = await ann.push(1, scores=[score("renamed", "A")])
    assert again["serverIdMapping"] == {"A": first}
    assert [item["data"]["title"] for item in (await ann.pull())["scores"]] == ["renamed"]


# -- 3.5


async def test_an_update_revives_a_deleted_score(ann: Device) -> None:
    first = (await ann.push(0, scores=[score("a", "A", bpm=60)]))["serverIdMapping"]["A"]
    await ann.push(1, deletes=[f"score:{first}"])
    done = await ann.push(2, scores=[update("score", first, "A", bpm=61)])
    assert done["accepted"] == ["A"]
    (item,) = (await ann.pull())["scores"]
    assert (item["isDeleted"], item["version"], item["data"]) == (False, 3, {"title": "a", "bpm": 61})


async def test_an_update_of_somebody_elses_or_of_nobodys_score_is_ignored(ann: Device, bob: Device) -> None:
    theirs = (await bob.push(0, scores=[score("b", "B")]))["serverIdMapping"]["B"]
    done = await ann.push(
        0,
        scores=[
            update("score", theirs, "1", title="mine"),
            update("score", 10**9, "2", title="x"),
            score("a", "3"),
        ],
        deletes=[f"score:{theirs}", "score:1000000000"],
    )
    assert (done["accepted"], done["newLibraryVersion"]) == (["3"], 1)
    assert [item["data"]["title"] for item in (await bob.pull())["scores"]] == ["b"]
    assert (await bob.pull())["deleted"] == []


async def test_a_child_of_somebody_elses_parent_is_ignored(ann: Device, bob: Device) -> None:
    theirs = (await bob.push(0, scores=[score("b", "B")]))["serverIdMapping"]["B"]
    mine = (await ann.push(0, setlists=[setlist("l", "L")]))["serverIdMapping"]["L"]
    done = await ann.push(
        1,
        instrumentScores=[part(theirs, "Violin", "I"), part("nobody", "Violin", "I2")],
        setlistScores=[entry(mine, theirs, "E")],
    )
    assert (done["accepted"], done["newLibraryVersion"]) == ([], 1)


async def test_an_update_of_the_wrong_kind_is_ignored(ann: Device) -> None:
    mine = (await ann.push(0, scores=[score("a", "A")]))["serverIdMapping"]["A"]
    done = await ann.push(1, setlists=[update("setlist", mine, "A", name="x")], deletes=[f"setlist:{mine}"])
    assert (done["accepted"], done["newLibraryVersion"]) == ([], 1)


# -- 6.3


async def test_a_create_an_update_or_a_delete_sent_again_after_a_lost_answer_makes_nothing_twice(
    ann: Device,
) -> None:
    first = (await ann.push(0, scores=[score("a", "A")]))["serverIdMapping"]["A"]
    assert (await ann.push(1, scores=[score("a", "A")]))["serverIdMapping"]["A"] == first
    for version in (2, 3):
        await ann.push(version, scores=[update("score", first, "A", bpm=5)])
    for version in (4, 5):
        done = await ann.push(version, deletes=[f"score:{first}"])
        assert done["newLibraryVersion"] == 5
    found = await ann.pull()
    assert versions(found) == {f"score:{first}": 5}
    assert found["deleted"] == [f"score:{first}"]
