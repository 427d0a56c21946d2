"""Chat in the storm: nothing that was saved is lost or there twice, no cursor goes beyond what was received."""

from __future__ import annotations

import asyncio

from tests.acceptance.serving import QUICK, holdfast
from tests.faults.chat import Chat
from tests.faults.conftest import Extent, Ground
from tests.faults.process import Server
from tests.faults.storm import Storm

LIFTED = [
    option
    for name in ("connection", "connection_burst", "user", "user_burst")
    for option in ("--set", f"chat.rate.{name}=1000000")
]


async def test_every_saved_message_outlives_every_kill(ground: Ground, extent: Extent) -> None:
    requests = ("--set", "limits.requests=1000000", "--set", "limits.anonymous_requests=1000000")
    server = Server(ground.folder, *QUICK, *LIFTED, *requests, *ground.options)
    storm = Storm(
        server,
        [Chat(extent.seed)],
        seed=extent.seed,
        postgresql=ground.postgresql,
        load_seconds=extent.load_seconds,
    )
    report = await storm.rage(kills=extent.kills, acknowledged=extent.acknowledged // 4)
    print(f"\n{ground.backend}: {report}")
    ended = await asyncio.to_thread(holdfast, "check", "--data", ground.folder, *ground.options)
    assert ended.code == 0, ended.out + ended.err
