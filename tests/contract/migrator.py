"""A process that opens a store and says how much it found: `python -m tests.contract.migrator WHERE`."""

from __future__ import annotations

import asyncio
import sys

from holdfast.store import Query
from holdfast.store.migrations import Migration
from tests.contract.notes import NOTES
from tests.servers.stores import stores_at

# not safe to run twice: only the lock and the record keep it from that
MORE = [
    NOTES,
    Migration("notes", 2, "first", "CREATE TABLE tally (n BIGINT); INSERT INTO tally VALUES (1)"),
    *(
        Migration("notes", n, "again", "INSERT INTO tally SELECT count(*) + 1 FROM tally")
        for n in range(3, 30)
    ),
]
TALLY = Query(int, "SELECT n FROM tally ORDER BY n")


async def open_and_tell(where: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    database = stores_at(where).make()
    await database.start(MORE)
    print(await database.read(lambda view: view.rows(TALLY)), flush=True)
    await database.stop()


if __name__ == "__main__":
    asyncio.run(open_and_tell(sys.argv[1]))
