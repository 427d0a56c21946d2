"""A broker on SQLite and on PostgreSQL: everything that lasts goes through the same statements, and means the same."""

from __future__ import annotations

import pytest

from holdfast.broker import check
from holdfast.broker.packets import MessageProperties, Puback, Pubcomp, Publish, Pubrec, Pubrel, Will
from holdfast.broker.session import WINDOW
from holdfast.clock import ManualClock
from holdfast.errors import CannotStart
from holdfast.settings import Broker as Settings
from holdfast.store.postgresql import claims
from tests.broker.speaking import migrations, running
from tests.conftest import OpenStore
from tests.servers.stores import PostgresqlStores


async def test_what_lasts_lasts_over_a_restart_and_a_crash(open_store: OpenStore) -> None:
    clock = ManualClock()
    properties = MessageProperties(message_expiry=1_000, user_properties=(("k", "ü"),))
    async with open_store(migrations()) as db, running(db, clock=clock) as house:
        reader = await house.lasting("r", username="me")
        await reader.subscribe("t/#", 2, identifier=5)
        writer = await house.lasting("w", will=Will(topic="t/will", payload=b"bye", delay=10))
        house.broker.send("kept", bytes(range(256)), qos=1, retain=True, properties=properties)
        for qos in (1, 2):
            writer.publish("t/x", b"%d\x00\xff" % qos, qos, properties=properties)
        await writer.get(Puback)
        await writer.get(Pubrec)
        one, two = await reader.get_all(Publish, 2)
        reader.say(Pubrec(two.packet_id))
        await reader.get(Pubrel)
        await house.broker.journal.drain()
        await house.crash()
    async with open_store(migrations()) as db, running(db, clock=clock) as house:
        assert await db.read(lambda view: list(check.problems(view))) == []
        late = await house.client("late")
        await late.subscribe("kept")
        kept = await late.get(Publish)
        assert (kept.payload, kept.properties, kept.retain) == (bytes(range(256)), properties, True)
        writer = await house.client("w", clean_start=False, session_expiry=100)
        writer.say(Publish("t/x", b"again", 2, dup=True, packet_id=2))
        await writer.get(Pubrec)
        writer.say(Pubrel(2))
        assert await writer.get(Pubcomp) == Pubcomp(2)
        reader = await house.client("r", clean_start=False, username="me", session_expiry=100)
        again = await reader.get(Publish)
        assert (again.payload, again.packet_id, again.dup, again.subscription_ids) == (
            one.payload,
            one.packet_id,
            True,
            (5,),
        )
        assert again.properties == properties
        assert await reader.get(Pubrel) == Pubrel(two.packet_id)
        reader.say(Puback(again.packet_id), Pubcomp(two.packet_id))
        house.tick(20)
        await reader.nothing()  # the will's client was back in time
        await house.broker.journal.drain()
        assert house.broker.queued_count == 0
        reader.drop()
        writer.drop()
        clock.advance(1_000)
        assert await house.broker.sweep() == 3  # two sessions, and what was retained
        assert await db.read(lambda view: list(check.problems(view))) == []


async def test_a_long_queue_comes_back_whole_and_a_full_one_drops_its_oldest(open_store: OpenStore) -> None:
    count = 2 * WINDOW + 100
    async with open_store(migrations()) as db, running(db, settings=Settings(queue_count=count)) as house:
        names = ("r", "s")
        for name in names:
            reader = await house.lasting(name)
            await reader.subscribe("t", 1)
            reader.drop()
        for number in range(count + 50):
            house.broker.send("t", b"%d" % number)
        await house.broker.journal.drain()
        assert house.broker.queued_count == 2 * count
        for name in names:
            reader = await house.client(name, clean_start=False, session_expiry=100)
            for number in range(50, count + 50):
                packet = await reader.get(Publish)
                assert packet.payload == b"%d" % number
                reader.say(Puback(packet.packet_id))
            await reader.nothing()
        await house.broker.journal.drain()
        assert house.broker.queued_count == house.broker.queued_bytes == 0
        assert await db.read(lambda view: list(check.problems(view))) == []


async def test_a_deleted_session_leaves_nothing(open_store: OpenStore) -> None:
    async with open_store(migrations()) as db, running(db) as house:
        reader = await house.lasting("r")
        await reader.subscribe("t", 1)
        reader.drop()
        for _ in range(1_500):
            house.broker.send("t", b"x")
        assert await house.broker.delete_session("r")
        await house.client("r", clean_start=False, session_expiry=9)
        await house.broker.leftovers.done()
        assert await db.read(lambda view: list(check.problems(view))) == []
        assert await house.broker.queue("r") == []


async def test_only_one_process_serves_mqtt_from_a_postgresql(
    postgresql_stores: PostgresqlStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions live in one process's memory: a second one would write over them."""
    monkeypatch.setattr(claims, "PATIENCE", 0.2)
    async with postgresql_stores(migrations()) as second:
        async with postgresql_stores(migrations()) as first, running(first):
            with pytest.raises(CannotStart, match="another holdfast serves MQTT"):
                async with running(second):
                    pass
        async with running(second):
            pass
