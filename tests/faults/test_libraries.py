"""Libraries under kills: every acknowledged push is there, none in half, no living reference without its file."""

from __future__ import annotations

import asyncio

import pytest

from tests.acceptance.serving import QUICK, holdfast
from tests.faults.conftest import Extent, Ground
from tests.faults.libraries import Libraries
from tests.faults.process import Server
from tests.faults.storm import Storm

pytestmark = pytest.mark.slow

UNLIMITED = (
    *QUICK,
    *("--set", "limits.library_requests=1000000000", "--set", "limits.requests=1000000000"),
    *("--set", "limits.anonymous_requests=1000000000", "--set", "auth.login_tries=1000000000"),
    *("--set", "log.level=error"),
)
SHARE = 10  # of the operations that notes make: a push with its PDF is a heavier one


async def test_every_acknowledged_push_outlives_every_kill_whole(ground: Ground, extent: Extent) -> None:
    server = Server(ground.folder, *UNLIMITED, *ground.options)
    storm = Storm(
        server,
        [Libraries(extent.seed)],
        seed=extent.seed,
        postgresql=ground.postgresql,
        load_seconds=extent.load_seconds,
    )
    report = await storm.rage(kills=extent.kills, acknowledged=extent.acknowledged // SHARE)
    print(f"\n{ground.backend}: {report}")
    checked = await asyncio.to_thread(holdfast, "check", "--deep", "--data", ground.folder, *ground.options)
    assert checked.code == 0, checked.out + checked.err
