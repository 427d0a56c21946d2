"""Another process on the same store: it ends the sessions of the user it is told, as the command line does."""

from __future__ import annotations

import asyncio
import sys

from holdfast import log
from holdfast.accounts import Accounts
from holdfast.clock import SystemClock
from holdfast.settings import Log
from tests.accounts.conftest import CHEAP, MIGRATIONS
from tests.servers.stores import stores_at


async def main(where: str, name: str) -> None:
    log.configure(Log())
    async with stores_at(where)(MIGRATIONS) as db:
        accounts = Accounts(db, CHEAP, SystemClock())
        await accounts.start()
        await accounts.end_sessions(await accounts.user_named(name))
        print("ended", flush=True)
        await accounts.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
