"""What is there after a process died: everything that was committed, acknowledged or not."""

from __future__ import annotations

import asyncio
import sys

import pytest

from holdfast.errors import AlreadyThere
from tests.conftest import OpenStore
from tests.contract.dying_writer import DIED
from tests.contract.notes import NOTES, add, half_applied, ids


async def test_a_write_whose_process_died_between_commit_and_answer_is_there_after_the_restart(
    open_store: OpenStore,
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.contract.dying_writer", open_store.where
    )
    assert await asyncio.wait_for(process.wait(), 30) == DIED
    async with open_store([NOTES]) as db:
        assert await db.read(ids) == [1]
        assert await db.read(half_applied) is None
        with pytest.raises(AlreadyThere):  # so the client that asks again can be told that it is done
            await db.write(add, 1)
