"""MQTT under SIGKILL: what was acknowledged arrives, QoS 2 once, in order; no ghost of a session or subscription."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from tests.faults.conftest import Extent, Ground
from tests.faults.mqtt import COMMAND, Mqtt
from tests.faults.process import Server
from tests.faults.storm import Storm
from tests.faults.test_notes import losses


class Load(msgspec.Struct, frozen=True):
    sessions: int
    kills: int
    acknowledged: int


@pytest.fixture
def load() -> Load:
    """`HOLDFAST_FAULTS=full` is what the issue asks for."""
    if os.environ.get("HOLDFAST_FAULTS") == "full":
        return Load(200, 50, 20_000)
    return Load(60, 5, 300)


async def test_every_acknowledged_message_outlives_every_kill(
    ground: Ground, extent: Extent, load: Load
) -> None:
    mqtt = Mqtt(extent.seed, sessions=load.sessions)
    storm = Storm(
        Server(ground.folder, *ground.options, command=COMMAND, door="--mqtt"),
        [mqtt],
        seed=extent.seed,
        postgresql=ground.postgresql,
        load_seconds=extent.load_seconds,
        is_ready=mqtt.is_ready,
    )
    report = await storm.rage(kills=load.kills, acknowledged=load.acknowledged)
    print(f"\n{ground.backend}: {report}")


@pytest.mark.parametrize(
    ("mutant", "seen"),
    [
        ("forgetful", "twice"),
        ("haunted", "to which it is not subscribed"),
        ("restless", "times|that nobody left|came back in time"),
        ("unsettled", "session present is True"),
    ],
)
async def test_the_harness_sees_a_broker_that_is(mutant: str, seen: str, tmp_path: Path) -> None:
    """…forgetful of QoS 2 identifiers, haunted by subscriptions, restless with wills, unsettled by old sessions."""
    command = (sys.executable, "-m", "tests.faults.broker_mutant", mutant, "--anonymous")
    await sees(Server(tmp_path / "data", command=command, door="--mqtt"), seen)


async def test_the_harness_sees_a_broker_that_acknowledges_before_it_writes(tmp_path: Path) -> None:
    relaxed = ("--set", "broker.durability=relaxed")
    server = Server(tmp_path / "data", *relaxed, command=COMMAND, door="--mqtt")
    await sees(server, "lacks|session present|not retained|was not published|is retained as")


async def sees(server: Server, seen: str) -> None:
    mqtt = Mqtt(1, sessions=30)
    storm = Storm(server, [mqtt], seed=1, is_ready=mqtt.is_ready)
    with pytest.raises(BaseExceptionGroup) as caught:
        await storm.rage(kills=100, acknowledged=10**9)
    assert any(re.search(seen, str(lost)) for lost in losses(caught.value)), losses(caught.value)
