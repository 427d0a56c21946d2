"""Clients that never forget: what they know survives every cut of their connection and every crash of the broker.

They do one thing at a time, when they are told to, so that a test can cut between any two.
"""

from __future__ import annotations

from collections import deque

from holdfast.broker.packets import (
    Connack,
    Connect,
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Reason,
    Suback,
    Subscribe,
    Subscription,
)
from tests.broker.speaking import House, Speaker

FOR_EVER = 0xFFFF_FFFF


class PerfectClient:
    def __init__(self, name: str, version: int = 5) -> None:
        self.name = name
        self.version = version
        self.speaker: Speaker | None = None
        self.is_in = False
        self.has_session = False
        self.inbox: deque[Packet] = deque()
        self.outbox: deque[Packet] = deque()
        self.receive_maximum = 65_535

    def connect(self, house: House) -> None:
        self.cut()
        self.speaker = house.speaker(self.version)
        self.speaker.say(
            Connect(
                version=self.version,
                client_id=self.name,
                clean_start=False,
                session_expiry=FOR_EVER,
                receive_maximum=self.receive_maximum,
            )
        )

    def cut(self) -> None:
        """What is on its way, either way, is gone."""
        if self.speaker is not None:
            self.speaker.drop()
        self.speaker = None
        self.is_in = False
        self.inbox.clear()
        self.outbox.clear()

    def receive(self) -> bool:
        """Handles the next packet; False when there is none."""
        speaker = self.speaker
        if speaker is None:
            return False
        self.inbox += speaker.read()
        speaker.read().clear()
        if not self.inbox:
            if speaker.wire.is_closed:
                self.cut()
            return False
        packet = self.inbox.popleft()
        if isinstance(packet, Connack):
            if packet.reason == Reason.SUCCESS:
                assert packet.session_present or not self.has_session, "the session is gone"
                self.is_in = self.has_session = True
                self.let_in(session_present=packet.session_present)
        else:
            self.handle(packet)
        return True

    def send(self) -> bool:
        """Sends the next packet; False when there is none."""
        if self.speaker is None or not self.is_in or not self.outbox:
            return False
        self.speaker.say(self.outbox.popleft())
        return True

    def let_in(self, *, session_present: bool) -> None:
        raise NotImplementedError

    def handle(self, packet: Packet) -> None:
        raise NotImplementedError


class Publisher(PerfectClient):
    def __init__(self, name: str, topics: tuple[str, ...], version: int = 5) -> None:
        super().__init__(name, version)
        self.topics = topics
        self.count = 0
        self.last_id = 0
        self.unacknowledged: dict[int, Publish] = {}
        self.released: set[int] = set()
        self.acknowledged: set[bytes] = set()
        self.published: list[tuple[str, int, bytes]] = []

    def publish(self, qos: int) -> None:
        """The next message: its payload says who published it and in which place."""
        if len(self.unacknowledged) >= 10:
            return
        self.count += 1
        self.last_id = self.last_id % 65_535 + 1
        topic = self.topics[self.count % len(self.topics)]
        payload = f"{self.name}:{self.count}".encode()
        packet = Publish(topic, payload, qos, packet_id=self.last_id)
        self.published.append((topic, qos, payload))
        self.unacknowledged[self.last_id] = packet
        self.outbox.append(packet)

    def let_in(self, *, session_present: bool) -> None:
        self.outbox.clear()
        for packet_id, packet in self.unacknowledged.items():
            if packet_id in self.released:
                self.outbox.append(Pubrel(packet_id))
            else:
                self.outbox.append(
                    Publish(packet.topic, packet.payload, packet.qos, dup=True, packet_id=packet_id)
                )

    def handle(self, packet: Packet) -> None:
        match packet:
            case Puback(packet_id=packet_id) | Pubcomp(packet_id=packet_id):
                found = self.unacknowledged.pop(packet_id, None)
                if found is not None:
                    self.acknowledged.add(found.payload)
                self.released.discard(packet_id)
            case Pubrec(packet_id=packet_id):
                self.released.add(packet_id)
                self.outbox.append(Pubrel(packet_id))
            case _:
                pass


class Subscriber(PerfectClient):
    """`is_eager`: when it is back it says at once what it has got already, and takes one message less at a time."""

    def __init__(
        self, name: str, pattern: str, qos: int, version: int = 5, *, is_eager: bool = False
    ) -> None:
        super().__init__(name, version)
        self.is_eager = is_eager
        self.pattern = pattern
        self.qos = qos
        self.held: set[int] = set()
        self.got: list[tuple[str, int, bytes]] = []
        self.is_subscribed = False

    def let_in(self, *, session_present: bool) -> None:
        if not self.is_subscribed:
            self.outbox.append(Subscribe(1, (Subscription(self.pattern, self.qos),)))
        if self.is_eager:
            self.outbox += [Pubrec(packet_id) for packet_id in sorted(self.held)]
            self.receive_maximum = self.receive_maximum - 1 if 1 < self.receive_maximum <= 3 else 3

    def handle(self, packet: Packet) -> None:
        match packet:
            case Suback():
                self.is_subscribed = True
            case Publish(qos=1):
                self._take(packet)
                self.outbox.append(Puback(packet.packet_id))
            case Publish(qos=2):
                if packet.packet_id not in self.held:
                    self._take(packet)
                self.held.add(packet.packet_id)
                self.outbox.append(Pubrec(packet.packet_id))
            case Pubrel(packet_id=packet_id):
                self.held.discard(packet_id)
                self.outbox.append(Pubcomp(packet_id))
            case _:
                pass

    def _take(self, packet: Publish) -> None:
        self.got.append((packet.topic, packet.qos, packet.payload))
