"""A day in the life of a client, in a minute: its clock is moved, the server is real, the network comes and goes."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack

from holdfast.client import Holdfast, Synced
from tests.client.http_proxy import HttpProxy
from tests.client.mqtt_proxy import MqttProxy
from tests.client.times import MovedTiming
from tests.client.weather import Weather
from tests.client.world import World, until

HOURS = float(os.environ.get("HOLDFAST_DAY_HOURS", "4"))
STEP = 10.0
EDIT_EVERY = 600.0
PER_FAILURE = 1 / 30
"""Tries a second once the ceiling of a minute is reached, on the average."""
QUIET_HOUR = 60
"""Requests an hour when nothing is wrong: a token, a pull at each reconnection for it, edits, pushes, checks."""


class Day:
    def __init__(self, app: Holdfast, timing: MovedTiming, weather: Weather) -> None:
        self.app = app
        self.timing = timing
        self.weather = weather

    async def passes(self, seconds: float) -> int:
        """How many requests were made meanwhile."""
        before = self.app._http.requests
        end = self.timing.monotonic() + seconds
        while self.timing.monotonic() < end:
            await self.timing.pass_by(min(STEP, end - self.timing.monotonic()))
            await asyncio.sleep(0.003)  # what was asked is answered in real time
        return self.app._http.requests - before


async def test_a_day_of_outages_costs_what_the_back_off_allows_and_loses_nothing(world: World) -> None:
    source = random.Random(11)
    weather, timing = Weather(11, strength=0.02), MovedTiming()
    weather.calm = True
    async with AsyncExitStack() as ends:
        http = await ends.enter_async_context(HttpProxy(weather, lambda: world.doors["http"]))
        mqtt = await ends.enter_async_context(MqttProxy(weather, lambda: world.doors["mqtt"]))
        doors = {**world.doors, "http": http.address, "mqtt": mqtt.address}
        app = world.replica("ann", doors=doors, timing=timing)
        await app.open()
        ends.push_async_callback(app.close)
        await app.register("ann", "correct horse")
        book = await app.ledger.add_book("Home")
        day, written, synced = Day(app, timing, weather), 0, list[Synced]()
        app.on_event(lambda event: synced.append(event) if isinstance(event, Synced) else None)
        await day.passes(60)
        while timing.monotonic() < HOURS * 3600:
            weather.calm, weather.down = False, False
            quiet = source.uniform(600, 3600)
            requests = 0
            for _ in range(int(quiet // EDIT_EVERY) + 1):
                await app.ledger.add_bill(book.id, written, "x")
                written += 1
                requests += await day.passes(EDIT_EVERY)
            assert requests <= QUIET_HOUR * max(1.0, quiet / 3600) * 3
            weather.down = True
            http.cut_all()
            mqtt.cut_all()
            lasts = source.choice((30.0, 300.0, 1800.0, 7200.0))
            await app.ledger.add_bill(book.id, written, "offline")
            written += 1
            assert await day.passes(lasts) <= 12 + lasts * PER_FAILURE * 1.6
        weather.calm, weather.down = True, False
        app.network_returned()

        async def settled() -> bool:
            await day.passes(5)
            return not (await app.status()).pending

        await until(settled)
        assert len(await app.ledger.bills(book.id)) == written
        await app.refresh()
        assert await app.ledger.sync.verify(at_once=True) is True
        assert synced
