"""One client id that comes again and again while its messages flow: nothing lost, QoS 2 never twice, wills as the
standard says."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from random import Random

import pytest

from holdfast.broker.packets import V5, Puback, Publish, Pubrec, Reason, Unsubscribe, Will
from tests.broker.conftest import Running
from tests.faults.mqtt_session import Link, Session
from tests.faults.operations import Lost

TIMES = int(os.environ.get("HOLDFAST_TAKEOVERS", "1000"))
WINDOW = 10
PATIENCE = 30.0
LONG_DELAY = 1_000


class Flow:
    """A publisher that never stops; what it sent, and what the restless subscriber got."""

    def __init__(self, broker: Running, version: int) -> None:
        self.address = broker.address
        self.lost: list[Lost] = []
        self.sent: Counter[int] = Counter()
        self.got: dict[int, list[int]] = {1: [], 2: []}
        self.wills: Counter[str] = Counter()
        self.publisher = Session("publisher", V5, broken=self.lost.append)
        self.restless = Session("restless", version, heard=self._heard, broken=self.lost.append, lazy=0.5)
        self.watcher = Session("watcher", V5, heard=self._will_came, broken=self.lost.append)

    def _heard(self, message: Publish) -> None:
        number = int(message.payload)
        if message.qos == 2 and number in self.got[2]:
            raise Lost(f"message {number} came twice at QoS 2")
        if number not in self.got[message.qos]:
            self.got[message.qos].append(number)

    def _will_came(self, message: Publish) -> None:
        self.wills[message.topic] += 1

    async def publish(self) -> None:
        while True:
            while len(self.publisher.outgoing) < WINDOW:
                qos = 1 + (self.sent.total() % 2)
                self.sent[qos] += 1
                self.publisher.publish(f"flow/{qos}", b"%d" % self.sent[qos], qos)
            await asyncio.sleep(0.002)

    async def everything_is_there(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not (  # noqa: ASYNC110
                self.publisher.is_idle
                and self.watcher.is_idle
                and all(len(self.got[qos]) == self.sent[qos] for qos in (1, 2))
            ):
                await asyncio.sleep(0.01)


def expected_wills(number: int, version: int, way: str) -> tuple[Will, int]:
    """The will of a connection, and how often it has to come when the connection ends in this way."""
    delayed = version == V5 and number % 3 == 0
    will = Will(topic=f"will/{number}", payload=b"", qos=2, delay=LONG_DELAY if delayed else 0)
    return will, 0 if delayed or way == "leave" else 1


async def test_a_client_that_comes_a_thousand_times_loses_nothing_and_gets_nothing_twice(
    broker: Running, version: int
) -> None:
    flow, chance = Flow(broker, version), Random(version)
    wanted: Counter[str] = Counter()
    links: list[tuple[Link, str]] = []
    steady = [await session.open(flow.address) for session in (flow.publisher, flow.watcher)]
    await asyncio.gather(flow.publisher.up.wait(), flow.watcher.up.wait())
    flow.watcher.subscribe("will/#", lambda: None)
    link = await flow.restless.open(flow.address)
    await flow.restless.up.wait()
    flow.restless.subscribe("flow/+", lambda: None)
    while not (flow.watcher.is_idle and flow.restless.is_idle):  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    publishing = asyncio.create_task(flow.publish())
    for number in range(TIMES):
        way = chance.choice(["take over", "take over", "take over", "drop", "leave"])
        will, times = expected_wills(number, version, way)
        flow.restless.will = will
        link = await flow.restless.open(flow.address)
        async with asyncio.timeout(PATIENCE):
            await flow.restless.up.wait()
        await asyncio.sleep(chance.choice([0, 0, 0.001, 0.005]))
        if way == "drop":
            link.cut()
        elif way == "leave":
            flow.restless.leave()
            await link.ended.wait()
        links.append((link, way))
        wanted[will.topic] += times
    flow.restless.will = None
    await flow.restless.open(flow.address)
    publishing.cancel()
    await flow.everything_is_there()
    assert flow.lost == []
    for qos in (1, 2):
        assert flow.got[qos] == sorted(flow.got[qos]), f"out of order at QoS {qos}"
    async with asyncio.timeout(PATIENCE):
        while flow.wills.total() < wanted.total():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert flow.wills == +wanted
    if version == V5:
        told = {link.goodbye for link, way in links if way == "take over"}
        assert told == {Reason.SESSION_TAKEN_OVER}
    for connection in steady:
        connection.cut()


async def test_many_newcomers_at_once_leave_one_of_them(broker: Running, version: int) -> None:
    """Whatever the order in which they are let in, one connection has the session, and it works."""
    clients = await asyncio.gather(*(broker.open(version) for _ in range(20)))
    answers = await asyncio.gather(*(client.connect("same") for client in clients), return_exceptions=True)
    assert all(isinstance(answer, BaseException) or answer.reason == 0 for answer in answers)
    newest = await broker.client("same", version)
    await newest.subscribed("t", qos=1)
    for client in clients:
        client.drop()
    await newest.publish("t", b"1", 1)
    await newest.receive("t", b"1", 1)


@pytest.mark.parametrize("qos", [1, 2])
async def test_an_old_connection_can_do_nothing_to_the_session_any_more(
    broker: Running, version: int, qos: int
) -> None:
    """What it still sends, acknowledgements above all, is not the session's."""
    keep = {"session_expiry": 100} if version == V5 else {}
    old = await broker.client("s", version, clean=False, **keep)
    await old.subscribed("t", qos=qos)
    other = await broker.client("p", version)
    await other.publish("t", b"1", qos)
    message = await old.expect_message("t", b"1", qos)
    new = await broker.client("s", version, clean=False, present=True, **keep)

    await old.send(Puback(message.packet_id) if qos == 1 else Pubrec(message.packet_id))
    await old.send(Unsubscribe(9, ("t",)))
    again = await new.expect_message("t", b"1", qos, dup=True, packet_id=message.packet_id)
    await new.acknowledge(again)
    await other.publish("t", b"2", qos)
    await new.receive("t", b"2", qos)
    await new.quiet()
