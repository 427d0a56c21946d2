"""The three scenarios that the design of the sessions ends with, with the tools that it names, and with kill -9."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import apsw
import pytest

from holdfast.broker.packets import Pingreq, Pingresp, Publish
from tests.acceptance.mosquitto_tools import Tools
from tests.acceptance.mqtt_server import Broker, broker
from tests.broker.client import Client

__all__ = ["broker"]

KEPT = ("-i", "client1", "-c", "-q", "1")


def rows(broker: Broker, statement: str) -> list[Sequence[object]]:
    """What lies in the store of a broker that does not run."""
    store = apsw.Connection(str(broker.server.folder / "holdfast.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(store.execute(statement))
    finally:
        store.close()


@pytest.mark.parametrize("killed", [False, True], ids=["", "kill -9"])
async def test_a_session_that_comes_back_gets_what_was_published_meanwhile(
    broker: Broker, killed: bool
) -> None:
    """Scenario 1: subscribe, Ctrl-C, publish, come back: Session Present, subscribed, the message is there."""
    tools = Tools(broker.address)
    await tools.publish("test/ready", "ready", "-r")
    async with tools.staying("-t", "test/#", *KEPT) as subscriber:
        assert await subscriber.line() == "ready"
    await tools.publish("test/ready", "", "-r", "-q", "1")
    await tools.publish("test/msg", "Hello", "-q", "1")
    if killed:
        await broker.killed_and_started()
    tools = Tools(broker.address)
    got = await tools.subscribe("-t", "test/#", *KEPT, "-C", "2", "-v")
    assert [line for line in got if "ready" not in line] == ["test/msg Hello"]
    async with await Client.connected(broker.address, "client1", 4, clean=False, present=True) as client:
        await client.publish("test/msg", b"still subscribed", 1)
        await client.receive("test/msg", b"still subscribed", 1)


async def test_a_clean_session_leaves_nothing_of_the_one_before(broker: Broker) -> None:
    """Scenario 2: subscribe with a kept session, come back clean: Session Present 0, nothing is left."""
    tools = Tools(broker.address)
    await tools.subscribe("-t", "test/#", *KEPT, "-E")
    await tools.publish("test/msg", "waiting", "-q", "1")
    await tools.subscribe("-t", "other", "-i", "client1", "-E")
    async with await Client.connected(broker.address, "client1", 4, clean=True, present=False) as client:
        await client.publish("test/msg", b"1", 1)
        await client.quiet()
    broker.server.terminate()
    await broker.server.gone()
    for table in ("broker_session", "broker_subscription", "broker_queue"):
        assert rows(broker, f"SELECT * FROM {table}") == []


async def test_a_filter_that_was_taken_back_stays_taken_back(broker: Broker) -> None:
    """Scenario 3, as one client: two filters, one unsubscribed; the tree and the store know the other alone."""
    tools = Tools(broker.address)
    await tools.subscribe("-t", "test/+", "-t", "home/#", *KEPT, "-E")
    await tools.subscribe("-t", "home/#", "-U", "test/+", *KEPT, "-E")
    await tools.publish("test/a", "no", "-q", "1")
    await tools.publish("home/a/b", "yes", "-q", "1")
    assert await tools.subscribe("-t", "home/#", *KEPT, "-C", "1", "-v") == ["home/a/b yes"]
    await everything_is_on_disk(broker, "home/a/b", b"yes")
    await broker.killed_and_started()
    tools = Tools(broker.address)
    await tools.publish("test/a", "no", "-q", "1")
    await tools.publish("home/a/b", "yes again", "-q", "1")
    async with await Client.connected(broker.address, "client1", 4, clean=False, present=True) as client:
        await client.receive("home/a/b", b"yes again", 1)
        await client.quiet()
    broker.server.terminate()
    await broker.server.gone()
    assert rows(broker, "SELECT filter FROM broker_subscription") == [("home/#",)]


async def everything_is_on_disk(broker: Broker, topic: str, payload: bytes) -> None:
    """Also the last PUBACK of client1, which nothing answers: what is committed later stands behind it."""
    async with await Client.connected(broker.address, "client1", 4, clean=False, present=True) as client:
        await client.send(Pingreq())
        came = await client.next()
        if isinstance(came, Publish):  # its PUBACK was not read when the connection ended
            assert (came.topic, came.payload, came.dup) == (topic, payload, True)
            await client.acknowledge(came)
            came = await client.next()
        assert came == Pingresp()
        await client.publish("mark", b"1", 1, retain=True)


async def test_a_message_is_skipped_for_who_is_away_and_not_kept_at_qos_0(broker: Broker) -> None:
    """P0 of the design: forwarding does not wait for a disconnected client."""
    tools = Tools(broker.address)
    await tools.subscribe("-t", "test/#", *KEPT, "-E")
    async with asyncio.timeout(20):
        await tools.publish("test/msg", "at QoS 0", "-q", "0")
        await tools.publish("test/msg", "at QoS 1", "-q", "1")
    assert await tools.subscribe("-t", "test/#", *KEPT, "-C", "1") == ["at QoS 1"]
