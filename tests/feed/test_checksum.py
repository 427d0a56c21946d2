"""The running checksum: 64 bits without a sign, added under the lock, never by the database."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from holdfast.feed import Change, Turn, checksum, lock_space, record, revision_hash
from holdfast.feed.digest import stored, unsigned
from holdfast.store import Transaction
from tests.conftest import OpenStore
from tests.feed.world import ITEM, ROOMS, Step, run, started

NOW = 1_750_000_000_000
HUGE = 2**64 - 1


@given(st.integers(0, HUGE))
def test_a_digest_fits_a_signed_column_and_comes_back(digest: int) -> None:
    assert -(2**63) <= stored(digest) < 2**63
    assert unsigned(stored(digest)) == digest


def test_the_hash_of_a_revision_is_what_the_specification_says() -> None:
    expected = sha256(b"bill\nabc\n2026-02-18T06:00:00.123Z").hexdigest()[:16]
    assert f"{revision_hash('bill', 'abc', '2026-02-18T06:00:00.123Z'):016x}" == expected


async def test_sums_beyond_64_bits_wrap_in_a_space_and_over_spaces(open_store: OpenStore) -> None:
    def put(tx: Transaction, key: int, name: str, *, now: int | None, was: int | None = None) -> None:
        space = lock_space(tx, key)
        assert space is not None
        record(tx, NOW, [Turn(space, (Change(ITEM, name, now, was),))])

    async with open_store(ROOMS) as db:
        await db.write(started)
        await db.write(run, NOW, [Step(1, "found", 1), Step(2, "found", 1)])
        before = int((await db.read(checksum, 1)).digest, 16)
        for key in (1, 2):
            for name in ("a", "b", "c"):
                await db.write(put, key, f"{name}{key}", now=HUGE)
        said = await db.read(checksum, 1)
        assert (said.count, said.digest) == (8, f"{(before + 6 * HUGE) % 2**64:016x}")
        await db.write(put, 1, "a1", now=7, was=HUGE)
        await db.write(put, 1, "b1", now=None, was=HUGE)
        said = await db.read(checksum, 1)
        assert (said.count, said.digest) == (7, f"{(before + 4 * HUGE + 7) % 2**64:016x}")
