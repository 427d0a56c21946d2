"""A client of ours in a process of its own: `python -m bench.load.replica`, a line of JSON in, a line of JSON out.

What is measured is what an app has: `Holdfast` with its background tasks, on a file of its own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.client import Event, Holdfast, Synced

LAST = 120.0


class Ask(Struct):
    """`what`: first-sync, drain, or open."""

    what: str
    replica: str
    http: str = "127.0.0.1:9"
    mqtt: str = "127.0.0.1:9"
    name: str = ""
    password: str = ""
    rows: int = 0


class Said(Struct):
    rate: float = 0.0
    ms: float = 0.0
    rows: int = 0


async def first_sync(ask: Ask) -> Said:
    """From the moment the login is answered to the last page applied."""
    async with Holdfast(ask.replica, server=ask.http, mqtt=ask.mqtt) as app:
        done = asyncio.Event()

        def hear(event: Event) -> None:
            if isinstance(event, Synced) and event.room == "ledger":
                done.set()

        app.on_event(hear)
        await app.login(ask.name, ask.password)
        begun = time.perf_counter()
        await asyncio.wait_for(done.wait(), LAST)
        took = time.perf_counter() - begun
        [book] = await app.ledger.books()
        rows = len(await app.ledger.bills(book.id)) + 1
    return Said(rate=rows / took, rows=rows)


async def drain(ask: Ask) -> Said:
    """Edits made with the server out of reach; then the time until the server has confirmed all of them."""
    async with Holdfast(ask.replica, server=ask.http, mqtt=ask.mqtt) as app:
        await app.login(ask.name, ask.password)
        await app.refresh()
    async with Holdfast(ask.replica, server="127.0.0.1:9") as app:  # nobody answers there
        [book] = await app.ledger.books()
        adds = (app.ledger.add_bill(book.id, number, "offline") for number in range(ask.rows))
        await asyncio.gather(*adds)
    async with Holdfast(ask.replica, server=ask.http, mqtt=ask.mqtt) as app:
        begun = time.perf_counter()
        await app.ledger.sync.drain(at_once=True)
        took = time.perf_counter() - begun
        assert not (await app.ledger.waiting()).pending
    return Said(rate=ask.rows / took, rows=ask.rows)


async def opening(ask: Ask) -> Said:
    """Until the first page of bills is on the screen."""
    begun = time.perf_counter()
    app = Holdfast(ask.replica)
    await app.open()
    [book] = await app.ledger.books()
    shown = await app.ledger.bills(book.id, limit=50)
    took = time.perf_counter() - begun
    await app.close()
    return Said(ms=took * 1000, rows=len(shown))


WORK = {"first-sync": first_sync, "drain": drain, "open": opening}


def main() -> None:
    for line in sys.stdin.buffer:
        ask = msgspec.json.decode(line, type=Ask)
        if ask.what != "open":
            for path in Path(ask.replica).parent.glob(Path(ask.replica).name + "*"):
                path.unlink()
        said = asyncio.run(WORK[ask.what](ask))
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
