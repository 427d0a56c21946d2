"""The ledger outlives every kill: nothing acknowledged is lost, over HTTP or MQTT, and nobody is told of what is not."""

from __future__ import annotations

from tests.faults.conftest import Extent, Ground
from tests.faults.ledger import LedgerOperations
from tests.faults.process import Server
from tests.faults.storm import Storm

OPTIONS = (
    "--set", "auth.argon2_memory_kib=8", "--set", "auth.argon2_passes=1", "--set", "limits.requests=1000000000",
    "--set", "limits.anonymous_requests=1000000000", "--set", "auth.login_tries=1000000", "--set", "log.level=error",
)  # fmt: skip


async def test_every_acknowledged_bill_outlives_every_kill(ground: Ground, extent: Extent) -> None:
    server = Server(ground.folder, *ground.options, *OPTIONS)
    storm = Storm(
        server,
        [LedgerOperations(extent.seed)],
        seed=extent.seed,
        postgresql=ground.postgresql,
        load_seconds=extent.load_seconds,
    )
    report = await storm.rage(kills=extent.kills, acknowledged=extent.acknowledged)
    print(f"\n{ground.backend}: {report}")
