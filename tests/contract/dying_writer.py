"""A process that commits a write and dies before it can say so: `python -m tests.contract.dying_writer WHERE`."""

from __future__ import annotations

import asyncio
import os
import sys

from tests.contract.notes import NOTES, add
from tests.servers.stores import stores_at

DIED = 9


async def commit_and_die(where: str) -> None:
    database = stores_at(where).make()
    # the commit has returned on the writer's thread, and what it hands over to the loop never gets there
    database._delivered = lambda *_: os._exit(DIED)  # type: ignore[attr-defined]
    await database.start([NOTES])
    await database.write(add, 1, "written, and never acknowledged")


if __name__ == "__main__":
    asyncio.run(commit_and_die(sys.argv[1]))
