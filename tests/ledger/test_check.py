"""`check` finds what was broken on purpose, one kind after the other, and nothing where nothing is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import blobs
from holdfast.feed import verify
from holdfast.ledger import check, sweep
from holdfast.ledger.model import Bill, Book, By, NewImage
from holdfast.store import Snapshot, Statement, Transaction
from tests.conftest import OpenStore
from tests.ledger.house import new_id
from tests.ledger.wired import ANN, BOB, Wired, wired


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def adds_image(here: Wired, bill: Bill, content: bytes) -> str:
    blob = await here.ledger.files.receive(chunks(content), limit=100, holder="h")
    new = NewImage(
        id=new_id(), bill_id=bill.id, sha256=blob.sha256, md5=blob.md5, size=blob.size,
        mime="image/gif", ext="gif", holder="h",
    )  # fmt: skip
    image = await here.does(ANN, here.orders.add_image(new))
    return str(image.id)


async def furnish(here: Wired) -> Book:
    """Books, bills and images, alive and dead; a code; a message that was taken."""
    book, doomed = await here.book_of(ANN, BOB), await here.book_of(ANN)
    lunch, dead = await here.bill_of(ANN, book), await here.bill_of(ANN, book)
    await adds_image(here, lunch, b"GIF89a kept")
    await adds_image(here, dead, b"GIF89a gone")
    await adds_image(here, await here.bill_of(ANN, doomed), b"GIF89a of a deleted book")
    await here.does(ANN, here.orders.delete_bill(dead.id))
    await here.does(ANN, here.orders.delete_book(doomed.id))
    await here.ledger.share(By(ANN, here.clock.now_ms()), book.id)
    sent = {"id": "m1", "type": "DELETE_BILL", "book_id": book.id, "content": dead.id}
    await here.messenger.publish(f"heji/up/{ANN}/bill", sent, ANN)
    return book


def problems(view: Snapshot) -> list[str]:
    return [
        *check.problems(view),
        *verify.problems(view, check.hashes),
        *blobs.verify_references(view, check.references(view)),
    ]


async def test_a_sound_store_has_no_problems_before_and_after_a_sweep(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with wired(open_store, tmp_path) as here:
        await furnish(here)
        assert await here.db.read(problems) == []
        await here.db.write_in_turns(sweep.sweep, here.clock.now_ms(), 10**12)
        assert await here.db.read(problems) == []
        here.clock.advance(100 * 24 * 3600)  # type: ignore[attr-defined]
        assert await here.db.write_in_turns(sweep.sweep, here.clock.now_ms(), 10**9) > 3
        assert len(await here.db.read(check.references)) == 1


LIVING_BILL = "(SELECT id FROM ledger_bill WHERE images <> '')"
BROKEN = [
    ("and its feed is not there or closed", "UPDATE feed_space SET closed_ms = 1"),
    ("it is deleted, and its feed is open", "UPDATE feed_space SET closed_ms = NULL"),
    ("it is open, and has no book", "DELETE FROM ledger_book"),
    ("its creator is not a member", "UPDATE ledger_book SET creator = 99"),
    ("its book is not there", "UPDATE ledger_bill SET space = 99"),
    ("its bill is not there, deleted", "DELETE FROM ledger_bill"),
    ("its bill is not there, deleted", "UPDATE ledger_bill SET deleted_ms = 1"),
    ("in another book", "UPDATE ledger_image SET space = space + 1"),
    ("it lists other images than it has", "UPDATE ledger_bill SET images = ''"),
    ("it lists other images than it has", "UPDATE ledger_image SET deleted_ms = 1"),
    (
        "it lists other images than it has",
        "UPDATE ledger_bill SET images = images || ' ' || images WHERE images <> ''",
    ),
    ("its money is 'much'", "UPDATE ledger_bill SET money = 'much'"),
    ("its money is '1.23456'", "UPDATE ledger_bill SET money = '1.23456'"),
    ("is not where it is listed", "UPDATE ledger_bill SET time_ms = 1"),
    ("is not where it is listed", "UPDATE ledger_bill SET time = 'then'"),
    ("it was changed before it was made", "UPDATE ledger_book SET upd_ms = 1"),
    ("it was changed before it was made", "UPDATE ledger_bill SET upd_ms = 1"),
    ("code", "UPDATE ledger_code SET space = 99"),
    ("it was taken, and has no answer", "UPDATE ledger_uplink SET ack = NOTHING"),
    ("its digest is", "UPDATE ledger_book SET upd_ms = upd_ms + 1"),
    ("its digest is", f"UPDATE ledger_bill SET upd_ms = upd_ms + 1 WHERE id = {LIVING_BILL}"),
    ("its digest is", "UPDATE ledger_image SET upd_ms = upd_ms + 1"),
    ("entry without entity", f"DELETE FROM ledger_bill WHERE id = {LIVING_BILL}"),
    ("it counts 1 references, there are 0", "UPDATE ledger_image SET deleted_ms = 1"),
    ("rows refer to it, and it is not there", "UPDATE ledger_image SET sha256 = 'x'"),
]


@pytest.mark.parametrize(("says", "damage"), BROKEN, ids=[f"{n}" for n in range(len(BROKEN))])
async def test_what_is_broken_is_found(
    sqlite_stores: OpenStore, tmp_path: Path, says: str, damage: str
) -> None:
    async with wired(sqlite_stores, tmp_path) as here:
        await furnish(here)
        statement = Statement(damage.replace("NOTHING", "x''"))

        def break_it(tx: Transaction) -> int:
            return tx.execute(statement)

        assert await here.db.write(break_it) > 0
        found = await here.db.read(problems)
        assert any(says in problem for problem in found), found
