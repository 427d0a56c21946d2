"""Wills: when one is published, when it is not, and that a crash does not lose it."""

from __future__ import annotations

import pytest

from holdfast.broker.hooks import Access
from holdfast.broker.packets import Connack, Connect, Disconnect, Publish, Reason, Will
from holdfast.settings import Broker as Settings
from tests.broker.conftest import OpenHouse
from tests.broker.speaking import EverybodyMay, House, Speaker, settle

LAST_WORD = Will(topic="will", payload=b"gone")


async def heir(house: House, version: int = 5) -> Speaker:
    reader = await house.lasting("heir", version)
    await reader.subscribe("will", 2)
    return reader


@pytest.mark.parametrize("version", [4, 5])
async def test_a_will_is_published_when_the_connection_is_lost(house: House, version: int) -> None:
    reader = await heir(house)
    (await house.client("c", version, will=LAST_WORD)).drop()
    assert (await reader.get(Publish)).payload == b"gone"


@pytest.mark.parametrize("version", [4, 5])
async def test_a_goodbye_takes_the_will_back(house: House, version: int) -> None:
    reader = await heir(house)
    leaving = await house.client("c", version, will=LAST_WORD)
    leaving.say(Disconnect())
    await leaving.closed()
    await reader.nothing()


async def test_a_goodbye_may_ask_for_the_will(house: House) -> None:
    reader = await heir(house)
    leaving = await house.client("c", will=LAST_WORD)
    leaving.say(Disconnect(reason=Reason.DISCONNECT_WITH_WILL))
    assert (await reader.get(Publish)).payload == b"gone"


async def test_a_protocol_error_publishes_the_will(house: House) -> None:
    reader = await heir(house)
    wrong = await house.client("c", will=LAST_WORD)
    wrong.write(b"\x00\x00")
    assert (await wrong.get(Disconnect)).reason == Reason.MALFORMED_PACKET
    assert (await reader.get(Publish)).payload == b"gone"


async def test_a_will_waits_for_its_delay_and_is_not_sent_to_who_is_back_in_time(house: House) -> None:
    reader = await heir(house)
    will = Will(topic="will", payload=b"late", delay=10)
    first = await house.client("c", will=will, clean_start=False, session_expiry=100)
    first.drop()
    house.tick(9)
    await reader.nothing()
    back = await house.client("c", clean_start=False, session_expiry=100)
    house.tick(20)
    await reader.nothing()
    back.drop()
    house.tick(20)
    await reader.nothing()  # the new connection had no will
    (await house.client("c", will=will, clean_start=False, session_expiry=100)).drop()
    house.tick(10)
    assert (await reader.get(Publish)).payload == b"late"


async def test_a_will_is_sent_when_its_session_ends_before_its_delay(house: House) -> None:
    reader = await heir(house)
    will = Will(topic="will", payload=b"end", delay=50)
    (await house.client("a", will=will, clean_start=False, session_expiry=5)).drop()
    house.tick(5)
    assert (await reader.get(Publish)).payload == b"end"
    (await house.client("b", will=will, clean_start=True)).drop()  # its session ends with its connection
    assert (await reader.get(Publish)).payload == b"end"
    (await house.client("c", will=will, clean_start=False, session_expiry=500)).drop()
    await reader.nothing()
    await house.client("c", clean_start=True)
    assert (await reader.get(Publish)).payload == b"end"


@pytest.mark.parametrize(
    ("delay", "clean_start", "is_sent"), [(0, False, True), (9, False, False), (9, True, True)]
)
async def test_a_takeover_sends_the_will_unless_the_session_goes_on_within_its_delay(
    house: House, delay: int, clean_start: bool, is_sent: bool
) -> None:
    reader = await heir(house)
    will = Will(topic="will", payload=b"taken", delay=delay)
    await house.client("c", will=will, clean_start=False, session_expiry=100)
    await house.client("c", clean_start=clean_start, session_expiry=100)
    if is_sent:
        assert (await reader.get(Publish)).payload == b"taken"
    house.tick(20)
    await reader.nothing()


@pytest.mark.parametrize("how", ["crash", "stop"])
async def test_a_will_is_kept_over_a_crash_and_over_a_stop(open_house: OpenHouse, how: str) -> None:
    async with open_house() as house:
        clock = house.clock
        (await heir(house)).drop()
        await house.client("now", will=Will(topic="will", payload=b"now"))
        for name in ("late", "back"):
            will = Will(topic="will", payload=name.encode(), delay=30)
            await house.client(name, will=will, clean_start=False, session_expiry=90_000)
        polite = await house.client("polite", will=LAST_WORD)
        polite.say(Disconnect())
        await polite.closed()
        if how == "crash":
            await house.broker.journal.drain()
            await house.crash()
    clock.advance(1_000)  # the time that the server was down does not count
    async with open_house(clock=clock) as house:
        reader = await house.client("heir", clean_start=False)
        house.tick()
        assert (await reader.get(Publish)).payload == b"now"
        house.tick(29)
        await reader.nothing()
        await house.client("back", clean_start=False, session_expiry=90_000)
        house.tick(1)
        assert (await reader.get(Publish)).payload == b"late"
        house.tick(100)
        await reader.nothing()
    async with open_house(clock=clock) as house:
        reader = await house.client("heir", clean_start=False)
        house.tick(100)
        assert [p.payload for p in reader.read() if isinstance(p, Publish) and not p.dup] == []


async def test_a_will_may_be_retained_and_has_its_own_qos(house: House) -> None:
    reader = await heir(house)
    (await house.client("c", will=Will(topic="will", payload=b"w", qos=1, retain=True))).drop()
    assert (await reader.get(Publish)).qos == 1
    late = await house.client("late")
    await late.subscribe("will")
    assert (await late.get(Publish)).retain


async def test_a_will_is_its_clients_publish_when_it_connects_and_when_it_is_sent(
    open_house: OpenHouse,
) -> None:
    hooks = EverybodyMay()
    async with open_house(hooks=hooks) as house:
        reader = await heir(house)
        testator = await house.client("c", will=LAST_WORD, username="me")
        hooks.denied.add(("me", Access.PUBLISH, "will"))
        refused = house.speaker()
        assert (await refused.connect("d", will=LAST_WORD, username="me")).reason == Reason.NOT_AUTHORIZED
        testator.drop()
        await reader.nothing()


@pytest.mark.parametrize(
    ("settings", "will", "reason"),
    [
        (Settings(max_qos=1), Will(topic="t", qos=2), Reason.QOS_NOT_SUPPORTED),
        (Settings(retain=False), Will(topic="t", retain=True), Reason.RETAIN_NOT_SUPPORTED),
        (Settings(), Will(topic="$SYS/broker/x"), Reason.TOPIC_NAME_INVALID),
        (Settings(max_levels=3), Will(topic="a/b/c/d"), Reason.TOPIC_NAME_INVALID),
    ],
)
async def test_a_will_that_could_not_be_published_is_refused_at_connect(
    open_house: OpenHouse, settings: Settings, will: Will, reason: Reason
) -> None:
    async with open_house(settings=settings) as house:
        assert (await house.speaker().connect("c", will=will)).reason == reason


async def test_a_client_that_goes_before_it_is_let_in_leaves_no_will(house: House) -> None:
    reader = await heir(house)
    hasty = house.speaker()
    hasty.say(Connect(client_id="c", will=LAST_WORD, session_expiry=60))
    await settle()
    hasty.drop()
    await house.broker.journal.drain()
    house.tick(100)
    await reader.nothing()
    assert not [p for p in hasty.read() if isinstance(p, Connack)]
