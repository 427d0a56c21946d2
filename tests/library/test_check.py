"""`holdfast check` sees each kind of damage to a library, and none in a sound one."""

from __future__ import annotations

import pytest

from holdfast.blobs import verify_references
from holdfast.library import check
from holdfast.store import Snapshot, Statement
from tests.library.conftest import Device, House, entry, part, score, setlist
from tests.library.pdfs import pdf


def problems(view: Snapshot) -> list[str]:
    return [*check.problems(view), *verify_references(view, check.references(view))]


async def furnished(house: House) -> dict[str, int]:
    ann = house.device()
    hash_ = await ann.upload(pdf())
    done = await ann.push(
        0,
        scores=[score("s", "S"), score("t", "T"), score("u", "U")],
        instrumentScores=[part("S", "v", "P", pdfHash=hash_)],
        setlists=[setlist("l", "L")],
        setlistScores=[entry("L", "S", "E")],
    )
    await ann.push(6, deletes=[f"score:{done['serverIdMapping']['U']}"])
    ids: dict[str, int] = done["serverIdMapping"]
    return ids


async def test_a_sound_library_has_no_problems(house: House, bob: Device) -> None:
    await furnished(house)
    await bob.push(0, scores=[score("s")])
    assert await house.db.read(problems) == []


DAMAGE = {
    "UPDATE library SET version = 3": "it is at version 3, and holds one of 7",
    "UPDATE library_entity SET deleted_ms = 1 WHERE id = :S": "lives, and its parent",
    "DELETE FROM library_entity WHERE id = :S": "that is not there",
    "UPDATE library_entity SET key = 'x' WHERE id = :T": "has another key than its data says",
    "UPDATE library_entity SET data = '[]' WHERE id = :T": "has data that is no JSON object",
    "UPDATE library_entity SET data = '{}' WHERE id = :T": "has no title",
    "UPDATE library_entity SET pdf_md5 = NULL WHERE id = :P": "counts another file than its data names",
    "UPDATE library_entity SET score_id = :T WHERE id = :P": "has other parents than its data says",
    "UPDATE library_entity SET user_id = 99 WHERE id = :T": "belong to no library",
    "UPDATE library_alias SET id = 10000 WHERE entity_id = 'T'": "T names an entity that is not there",
    "UPDATE library_next_id SET next = 2": "will be given out again",
    "UPDATE blob SET refs = 2": "it counts 2 references, there are 1",
    "DELETE FROM blob": "which is not there",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_each_kind_of_damage_is_said(house: House, damage: str) -> None:
    ids = await furnished(house)
    named = damage
    for name, server_id in ids.items():
        named = named.replace(f":{name}", str(server_id))
    assert await house.db.write(lambda tx: tx.execute(Statement(named)))
    found = await house.db.read(problems)
    assert any(DAMAGE[damage] in problem for problem in found), found


async def test_two_that_live_under_one_key_are_said_where_the_index_is_gone(house: House) -> None:
    ids = await furnished(house)

    def twins(tx: object) -> None:
        tx.execute(Statement("DROP INDEX library_entity_key"))
        tx.execute(
            Statement(
                f"UPDATE library_entity SET key = (SELECT key FROM library_entity WHERE id = {ids['S']}) WHERE id = {ids['T']}"
            )
        )

    await house.db.write(twins)
    assert any("live under one key" in problem for problem in await house.db.read(problems))


async def test_the_database_itself_refuses_two_living_rows_with_one_key_and_two_rows_of_one_version(
    house: House,
) -> None:
    ids = await furnished(house)
    for change in (
        f"UPDATE library_entity SET key = (SELECT key FROM library_entity WHERE id = {ids['S']}) WHERE id = {ids['T']}",
        "UPDATE library_entity SET version = 1",
        f"UPDATE library_entity SET pdf_md5 = 'x' WHERE id = {ids['U']}",
    ):
        with pytest.raises(Exception, match=r"(?i)constraint|exists|violates"):
            await house.db.write(lambda tx, change=change: tx.execute(Statement(change)))
