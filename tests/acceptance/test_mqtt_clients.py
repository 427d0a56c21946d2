"""Clients that people use, against a real `holdfast broker`: Mosquitto's tools, paho-mqtt, aiomqtt."""

from __future__ import annotations

import asyncio
import queue

import aiomqtt
import pytest
from paho.mqtt.client import Client as Paho
from paho.mqtt.client import ConnectFlags, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from tests.acceptance.mosquitto_tools import Tools
from tests.acceptance.mqtt_server import Broker, broker

__all__ = ["broker"]

PATIENCE = 30.0


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
async def test_mosquittos_tools_of_each_version(broker: Broker, version: str) -> None:
    tools = Tools(broker.address, version)
    await tools.publish("tools/ready", "ready", "-r", "-q", "1")
    async with tools.staying("-t", "tools/#", "-q", "2", "-F", "%t %q %r %p") as subscriber:
        assert await subscriber.line() == "tools/ready 1 1 ready"
        for qos in "012":
            await tools.publish(f"tools/{qos}", f"at {qos}", "-q", qos)
            assert await subscriber.line() == f"tools/{qos} {qos} 0 at {qos}"
    will = ("--will-topic", "tools/will", "--will-payload", "gone", "--will-retain", "--will-qos", "1")
    async with tools.staying("-t", "tools/ready", *will) as doomed:
        assert await doomed.line() == "ready"
        doomed._process.kill()
        await doomed._process.wait()
        assert await tools.subscribe("-t", "tools/will", "-C", "1") == ["gone"]
        doomed._process.send_signal = lambda _number: None  # type: ignore[method-assign]


class PahoClient:
    """paho in its own thread; what it hears comes through queues."""

    def __init__(self, broker: Broker, name: str, version: MQTTProtocolVersion, *, kept: bool) -> None:
        clean = None if version is MQTTProtocolVersion.MQTTv5 else not kept
        self.client = Paho(CallbackAPIVersion.VERSION2, name, clean_session=clean, protocol=version)
        self.connected: queue.Queue[bool] = queue.Queue()
        self.messages: queue.Queue[MQTTMessage] = queue.Queue()
        self.subscribed: queue.Queue[int] = queue.Queue()
        self.client.on_connect = self._on_connect
        self.client.on_message = lambda _client, _data, message: self.messages.put(message)
        self.client.on_subscribe = lambda _client, _data, mid, _codes, _properties: self.subscribed.put(mid)
        host, _, port = broker.address.rpartition(":")
        if version is MQTTProtocolVersion.MQTTv5:
            expiry = Properties(PacketTypes.CONNECT)
            expiry.SessionExpiryInterval = 100 if kept else 0
            self.client.connect(host, int(port), clean_start=not kept, properties=expiry)
        else:
            self.client.connect(host, int(port))
        self.client.loop_start()
        self.session_present = self.connected.get(timeout=PATIENCE)

    def _on_connect(
        self, _client: Paho, _data: object, flags: ConnectFlags, reason: ReasonCode, _properties: object
    ) -> None:
        assert not reason.is_failure
        self.connected.put(flags.session_present)

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize("version", list(MQTTProtocolVersion), ids=lambda version: version.name)
async def test_paho(broker: Broker, version: MQTTProtocolVersion) -> None:
    """QoS 2 to a session that was away, with what paho believes about sessions."""

    def talk() -> list[tuple[str, bytes, int]]:
        reader = PahoClient(broker, "reader", version, kept=True)
        assert not reader.session_present
        reader.client.subscribe("paho/#", 2)
        reader.subscribed.get(timeout=PATIENCE)
        reader.leave()
        writer = PahoClient(broker, "writer", version, kept=False)
        for qos in (1, 2):
            for number in range(20):
                writer.client.publish(f"paho/{qos}", b"%d" % number, qos).wait_for_publish(PATIENCE)
        writer.leave()
        reader = PahoClient(broker, "reader", version, kept=True)
        if version is not MQTTProtocolVersion.MQTTv31:
            assert reader.session_present
        got = [reader.messages.get(timeout=PATIENCE) for _ in range(40)]
        reader.leave()
        return [(message.topic, message.payload, message.qos) for message in got]

    got = await asyncio.to_thread(talk)
    assert got == [(f"paho/{qos}", b"%d" % number, qos) for qos in (1, 2) for number in range(20)]


@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
async def test_aiomqtt(broker: Broker, version: aiomqtt.ProtocolVersion) -> None:
    host, _, port = broker.address.rpartition(":")
    will = aiomqtt.Will("aio/will", b"gone", qos=1)
    async with (
        asyncio.timeout(PATIENCE),
        aiomqtt.Client(host, int(port), protocol=version) as reader,
        aiomqtt.Client(host, int(port), protocol=version, will=will) as writer,
    ):
        await reader.subscribe("aio/#", qos=2)
        for qos in (0, 1, 2):
            await writer.publish(f"aio/{qos}", b"%d" % qos, qos=qos)
        got = []
        async for message in reader.messages:
            got.append((str(message.topic), message.payload, message.qos))
            if len(got) == 3:
                break
    assert got == [(f"aio/{qos}", b"%d" % qos, qos) for qos in (0, 1, 2)]
