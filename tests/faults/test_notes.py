"""Raw durable writes: nothing acknowledged is lost, nothing is there in half, whoever is killed and whenever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.conftest import Extent, Ground
from tests.faults.notes import COMMAND, Notes
from tests.faults.operations import Lost
from tests.faults.process import Server
from tests.faults.storm import Storm


async def test_every_acknowledged_note_outlives_every_kill(ground: Ground, extent: Extent) -> None:
    server = Server(ground.folder, *ground.options, command=COMMAND)
    storm = Storm(
        server,
        [Notes(extent.seed)],
        seed=extent.seed,
        postgresql=ground.postgresql,
        load_seconds=extent.load_seconds,
    )
    report = await storm.rage(kills=extent.kills, acknowledged=extent.acknowledged)
    print(f"\n{ground.backend}: {report}")


@pytest.mark.parametrize(
    ("mutant", "seen"),
    [
        ("early", "acknowledged notes are lost"),
        ("torn", "half a note"),
        ("forgetful", "was first kept at"),
    ],
)
async def test_the_harness_sees_a_server_that_is(mutant: str, seen: str, tmp_path: Path) -> None:
    """…early: answers before the commit; torn: uses two transactions; forgetful: takes a replay for news."""
    server = Server(tmp_path / "data", "--mutant", mutant, command=COMMAND)
    with pytest.raises((Lost, BaseExceptionGroup)) as caught:
        await Storm(server, [Notes(seed=1)], seed=1).rage(kills=100, acknowledged=10**9)
    assert any(seen in str(error) for error in losses(caught.value)), caught.value


def losses(error: BaseException) -> list[Lost]:
    """The losses in what the harness raised (clients fail in groups)."""
    if isinstance(error, BaseExceptionGroup):
        return [lost for inner in error.exceptions for lost in losses(inner)]
    return [error] if isinstance(error, Lost) else []
