"""An answer comes when it is safe, not when something else happens to stir the broker."""

from __future__ import annotations

from time import monotonic

import pytest

from tests.broker.conftest import Running, kept

MANY = 40
PROMPT = 10.0
"""Seconds for `MANY` round trips, each with a commit. A tick of the broker's clock each would take longer."""


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("retain", [False, True])
async def test_a_publish_that_nobody_gets_is_answered_at_once(
    broker: Running, version: int, qos: int, retain: bool
) -> None:
    client = await broker.client("p", version, **kept(version))
    began = monotonic()
    for number in range(MANY):
        await client.publish(f"t/{number}", b"1", qos, retain=retain)
    assert monotonic() - began < PROMPT


async def test_subscribing_is_answered_at_once(broker: Running, version: int) -> None:
    client = await broker.client("s", version, **kept(version))
    began = monotonic()
    for number in range(MANY):
        await client.subscribe(f"t/{number}", qos=1)
        await client.unsubscribe(f"t/{number}")
    assert monotonic() - began < PROMPT
