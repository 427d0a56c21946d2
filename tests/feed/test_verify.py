"""Every damage that `check` is there for is found, and named."""

from __future__ import annotations

import pytest

from holdfast.feed.verify import problems
from holdfast.store import Database, Statement
from tests.conftest import OpenStore
from tests.feed.world import ROOMS, Step, hashes, run, started

NOW = 1_750_000_000_000

DAMAGE = [
    ("UPDATE feed_log SET pos = pos + 1000000 WHERE space = 1 AND seq = 3", "positions do not rise"),
    ("UPDATE feed_space SET head = 5 WHERE space = 1", "its log goes to"),
    ("UPDATE feed_space SET cseq = cseq - 1 WHERE space = 1", "entity numbers outside"),
    ("DELETE FROM feed_log WHERE space = 1 AND seq = 3", "rows and 0 swept"),
    ("UPDATE thing SET dead = TRUE WHERE id = 'a'", "entry without entity, kind 2, a"),
    ("UPDATE feed_log SET died_ms = 5 WHERE entity = 'a'", "entity without entry, kind 2, a"),
    ("UPDATE thing SET rev = 9 WHERE id = 'a'", "its digest is"),
    ("UPDATE feed_space SET live = 9 WHERE space = 1", "counts 9 living"),
    ("DELETE FROM feed_space WHERE space = 1", "log rows of the space 1, which is not there"),
    ("DELETE FROM feed_space WHERE space = 1", "link of 1 to the space 1: the space is not there"),
    ("DELETE FROM feed_owner WHERE owner = 1", "the owner has no feed"),
    ("UPDATE feed_link SET left_ms = 5 WHERE owner = 1 AND space = 1", "inside and left at once"),
    ("UPDATE feed_link SET cut = 99 WHERE owner = 2 AND space = 1", "cut at 99"),
    ("UPDATE feed_owner SET last = last - 1 WHERE owner = 1", "the head of the feed is"),
    ("UPDATE feed_link SET base = base - 2, cut = cut + 1 WHERE owner = 2 AND space = 2", "overlaps"),
    (
        "UPDATE feed_log SET pos = (SELECT max(pos) FROM feed_log WHERE space = 1) WHERE entity = 'c'",
        "is taken by",
    ),
    (
        "UPDATE feed_log SET pos = (SELECT base + cut FROM feed_link WHERE owner = 2 AND space = 2) WHERE entity = 'd'",
        "lies in the range",
    ),
]


async def build(db: Database) -> None:
    await db.write(started)
    await db.write(run, NOW, [Step(1, "found", 1), *[Step(1, "item", name=name) for name in "ab"]])
    await db.write(run, NOW, [Step(2, "found", 3)])
    await db.write(run, NOW, [Step(1, "join", 2, quiet=True)])
    await db.write(run, NOW, [Step(1, "edit", pick=0)])
    await db.write(run, NOW, [Step(2, "join", 2, quiet=True)])
    await db.write(run, NOW, [Step(2, "item", name="c")])
    await db.write(run, NOW, [Step(1, "item", name="d")])


async def test_a_sound_store_has_no_problems(open_store: OpenStore) -> None:
    async with open_store(ROOMS) as db:
        await build(db)
        assert await db.read(lambda view: list(problems(view, hashes))) == []


@pytest.mark.parametrize(("damage", "said"), DAMAGE)
async def test_damage_is_found(open_store: OpenStore, damage: str, said: str) -> None:
    async with open_store(ROOMS) as db:
        await build(db)
        await db.write(lambda tx: tx.execute(Statement(damage)))
        found = await db.read(lambda view: list(problems(view, hashes)))
        assert any(said in problem for problem in found), found
