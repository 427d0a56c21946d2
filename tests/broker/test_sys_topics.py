"""`$SYS/broker/…`: the names people know, told when they change; averages that mean something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.broker.sys_topics import Load, SysTopics
from tests.broker.conftest import Start
from tests.broker.running import InProcess

USUAL = {
    "version",
    "uptime",
    "clients/total",
    "clients/connected",
    "clients/disconnected",
    "clients/maximum",
    "clients/expired",
    "messages/received",
    "messages/sent",
    "messages/stored",
    "store/messages/count",
    "store/messages/bytes",
    "subscriptions/count",
    "shared_subscriptions/count",
    "retained messages/count",
    "publish/messages/received",
    "publish/messages/sent",
    "publish/messages/dropped",
    "publish/bytes/received",
    "publish/bytes/sent",
    "bytes/received",
    "bytes/sent",
    "load/messages/received/1min",
    "load/publish/sent/15min",
    "load/connections/5min",
}


@pytest.fixture
async def house(start: Start) -> tuple[InProcess, SysTopics]:
    running = await start()
    assert isinstance(running, InProcess)
    return running, SysTopics(running.broker, running.broker.clock, 10.0)


async def test_the_usual_names_tell_what_there_is(house: tuple[InProcess, SysTopics]) -> None:
    running, topics = house
    away = await running.client("away", clean=False, session_expiry=3600)
    await away.subscribed("a/#", qos=1)
    await away.leave(session_expiry=3600)
    client = await running.client("here")
    await client.subscribed("$share/g/b", "b")
    await client.publish("a/x", b"12345", 1, retain=True)
    values = topics.values()
    assert values.keys() >= USUAL
    told = {name: values[name] for name in USUAL if "load" not in name}
    assert (told["clients/total"], told["clients/connected"], told["clients/disconnected"]) == ("2", "1", "1")
    assert (told["clients/maximum"], told["clients/expired"]) == ("1", "0")
    assert (told["subscriptions/count"], told["shared_subscriptions/count"]) == ("2", "1")
    assert (told["retained messages/count"], told["publish/messages/received"]) == ("1", "1")
    assert (told["publish/bytes/received"], told["publish/messages/dropped"]) == ("5", "0")
    assert told["messages/stored"] == "2"
    assert int(told["bytes/received"]) > 0
    assert told["uptime"].endswith(" seconds")


async def test_only_what_has_changed_is_told_again(house: tuple[InProcess, SysTopics]) -> None:
    running, topics = house
    client = await running.client("here")
    topics.tell()
    await client.subscribed("$SYS/broker/version", "$SYS/broker/subscriptions/count")
    await client.receive("$SYS/broker/version", b"holdfast version 0.1.0", retain=True)
    await client.receive("$SYS/broker/subscriptions/count", b"0", retain=True)
    topics.tell()
    await client.receive("$SYS/broker/subscriptions/count", b"2")
    topics.tell()
    await client.quiet()


async def test_nothing_is_kept_of_it_and_no_queue_fills_with_it(house: tuple[InProcess, SysTopics]) -> None:
    running, topics = house
    away = await running.client("away", clean=False, session_expiry=3600)
    await away.subscribed("$SYS/#", qos=2)
    await away.leave(session_expiry=3600)
    topics.tell()
    (session,) = running.broker.sessions()
    assert session.queued == 0
    await running.shut()
    await running.start()
    assert running.broker.retained_count == 0


@given(rate=st.floats(0, 1e6), seconds=st.floats(1, 60))
def test_a_steady_load_is_its_own_average_in_the_end(rate: float, seconds: float) -> None:
    load = Load()
    for number in range(2_000):
        load.look(number * rate * seconds / 60, seconds)
    assert load.averages[1] == pytest.approx(rate, rel=1e-3, abs=1e-6)


def test_a_burst_fades_the_quicker_the_shorter_the_average() -> None:
    load = Load()
    load.look(0, 10)
    load.look(1_000, 10)
    after = dict(load.averages)
    assert after[1] > after[5] > after[15] > 0
    for _ in range(6):
        load.look(1_000, 10)
    assert load.averages[1] == pytest.approx(after[1] / 2.718281828, rel=1e-6)
    assert load.averages[15] > 0.9 * after[15]
